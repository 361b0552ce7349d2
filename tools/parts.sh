#!/usr/bin/env bash
# Installs what tests need beside Python, where this machine can. What is missing afterwards makes named skips,
# or failures under KVTRAIL_REQUIRE_REAL=1.
set -u
cd "$(dirname "$0")/.." || exit 0
missing=()
command -v chromium >/dev/null 2>&1 || missing+=(chromium fonts-dejavu-core)
command -v redis-server >/dev/null 2>&1 || missing+=(redis-server)
if [ -z "${KVTRAIL_TEST_KAFKA:-}" ]; then # a broker that is named needs neither
  command -v java >/dev/null 2>&1 || missing+=(default-jre-headless)
  command -v mvn >/dev/null 2>&1 || compgen -G '.parts/kafka/kafka-*' >/dev/null || missing+=(maven)
fi
if [ ${#missing[@]} -ne 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing ${missing[*]}" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null \
      || echo "could not install ${missing[*]}" >&2
  else
    echo "missing: ${missing[*]} (install them with your package manager; tests that need them are skipped by name)" >&2
  fi
fi
if [ -z "${KVTRAIL_TEST_KAFKA:-}" ] && [ -x .venv/bin/python ]; then
  .venv/bin/python -m kvtrail_cli.demo.broker .parts/kafka || true
fi
exit 0
