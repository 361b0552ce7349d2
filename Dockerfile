# kvtrail without the reference engine: collector, dashboard, command line. The recorder goes into the engine's own image.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt "$(ls /wheels/*.whl)[kafka,collector,dashboards]" \
    && rm -r /wheels /tmp/constraints.txt \
    && useradd --create-home --uid 10001 kvtrail \
    && install --directory --owner=kvtrail --mode=0700 /var/lib/kvtrail
USER kvtrail
WORKDIR /var/lib/kvtrail
VOLUME /var/lib/kvtrail
ENTRYPOINT ["kvtrail"]
CMD ["collector", "serve"]
