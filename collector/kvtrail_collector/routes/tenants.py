"""`GET /v1/tenants` and `/v1/prefetch/flow`: what each tenant got, what was deleted, what became of prefetches."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.questions.deletions import deletions
from kvtrail_collector.questions.prefetch_flow import prefetch_flow
from kvtrail_collector.questions.scope import choose, namespaces_of
from kvtrail_collector.questions.tenant_accounts import Tenants, has_lookups, listed, tenant_accounts
from kvtrail_collector.replies import reply
from kvtrail_collector.routes.asked import AskedScope, Points
from kvtrail_collector.security import Scope as Access


def tenant_routes(context: Context) -> APIRouter:
    """Questions by tenant; they run on worker threads."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Access.READ))])

    @router.get("/v1/tenants")
    def tenants(scope: AskedScope) -> Response:
        """Accounts by tenant, and deletions with their evidence. Both are of all tenants and models of an engine and rank."""
        device = context.answers.device(scope.engine)
        with context.store.read() as cursor:
            chosen = choose(cursor, scope)
            tenant_of = {one.ns: one.tenant for one in namespaces_of(cursor, chosen.streams)}
            accounts, deleted = tenant_accounts(cursor, chosen, tenant_of), deletions(cursor, chosen)
            looked_up = has_lookups(cursor, chosen)
        shown = listed(accounts)
        return reply(Tenants(shown, deleted, device, looked_up, tenants_left_out=len(accounts) - len(shown)))

    @router.get("/v1/prefetch/flow")
    def flow(scope: AskedScope, points: Points = 150) -> Response:
        """From issued to used, wasted or cancelled, over time, by reason and tenant."""
        device = context.answers.device(scope.engine)
        with context.store.read() as cursor:
            chosen = choose(cursor, scope)
            tenant_of = {one.ns: one.tenant for one in namespaces_of(cursor, chosen.streams)}
            return reply(prefetch_flow(cursor, chosen, tenant_of, points, device))

    return router
