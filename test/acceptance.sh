#!/bin/sh
# The session of a user from a fresh clone: demo, sandbox, the AWS CLI, cbt and jq.
#
#   test/acceptance.sh                        builds bin/replicator and runs the session against the sandbox
#   BIGTABLE=cbtemulator test/acceptance.sh   Google's own emulator in the place of the sandbox's Bigtable: a path, a
#                                             name in PATH, or the one in the Google Cloud SDK; skipped where there is none
#   PORTS=18000,18086,14222,19464             other ports for DynamoDB, Bigtable, NATS and admin
#   DEMO=0                                    without the demo
#   REPLICATOR=/path/to/replicator            that one instead of building
set -eu

missing() { echo "acceptance: $1 is not in PATH: $2" >&2; exit 3; }
command -v aws >/dev/null || missing aws 'the AWS CLI, version 2 (Debian: awscli)'
command -v cbt >/dev/null || missing cbt "Bigtable's command line (Google Cloud SDK: cbt)"
command -v jq >/dev/null || missing jq 'any version (Debian: jq)'
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -n "${REPLICATOR:-}" ]; then
	[ -x "$REPLICATOR" ] || missing "$REPLICATOR" 'REPLICATOR must name the program'
else
	command -v go >/dev/null || missing go 'to build replicator, or set REPLICATOR'
	REPLICATOR=$root/bin/replicator
	make -s -C "$root" build
fi
replicator() { "$REPLICATOR" "$@"; }

# emulator prints where Google's emulator is, or nothing.
emulator() {
	command -v "$1" && return
	[ "$1" = cbtemulator ] || return 0
	for sdk in "${CLOUDSDK_ROOT:-}" "$(dirname "$(readlink -f "$(command -v gcloud)" 2>/dev/null)" 2>/dev/null)/.." \
		/usr/lib/google-cloud-sdk /opt/google-cloud-sdk "${HOME:-/root}/google-cloud-sdk"; do
		file=$sdk/platform/bigtable-emulator/cbtemulator
		[ ! -x "$file" ] || { echo "$file"; return; }
	done
}
if [ -n "${BIGTABLE:-}" ]; then
	wanted=$BIGTABLE
	BIGTABLE=$(emulator "$wanted")
	if [ -z "$BIGTABLE" ]; then
		echo "acceptance: SKIPPED, there is no $wanted (gcloud components install bigtable)"
		exit 0
	fi
fi
PORTS=${PORTS:-8000,8086,4222,9464}
IFS=, read -r DYNAMODB BIGTABLE_PORT NATS ADMIN <<-EOF
	$PORTS
EOF
T=$(mktemp -d)
sandbox='' daemon='' google='' step=start
finish() {
	code=$?
	for pid in $daemon $google $sandbox; do kill "$pid" 2>/dev/null || true; done
	wait
	if [ $code -eq 0 ]; then rm -rf "$T"; else
		echo "acceptance: FAILED in step: $step (left in $T)" >&2
		tail -n 20 "$T/run.log" "$T/cbt.log" 2>/dev/null >&2 || true
	fi
	exit $code
}
trap finish EXIT
trap 'exit 1' INT TERM

begin() { step=$1; echo "== $step"; }
fail() { echo "acceptance: $*" >&2; exit 1; }

if [ "${DEMO:-1}" != 1 ]; then
	begin 'demo: skipped, as asked for'
elif ! replicator demo --help >/dev/null 2>&1; then
	begin 'demo: skipped, this program has none'
else
	begin 'demo: kills on the way, every cell equal'
	replicator demo --duration 20s --rate 2000 --seed 7 --json | tail -1 |
		jq -e '.equal and .differences==0 and .rows>0 and .kills>=1' >/dev/null
fi

begin 'sandbox: three servers'
"$REPLICATOR" sandbox --dir "$T/sandbox" --ready-file "$T/ready" \
	--dynamodb "127.0.0.1:$DYNAMODB" --bigtable "127.0.0.1:$BIGTABLE_PORT" --nats "127.0.0.1:$NATS" &
sandbox=$!
i=0
until [ -f "$T/ready" ]; do
	kill -0 $sandbox || fail 'the sandbox ended'
	i=$((i + 1)); [ $i -lt 300 ] || fail 'the sandbox is not ready after 30 s'
	sleep 0.1
done
eval "$(replicator sandbox env --dynamodb "127.0.0.1:$DYNAMODB" --bigtable "127.0.0.1:$BIGTABLE_PORT" --nats "127.0.0.1:$NATS")"
export AWS_PAGER=
if [ -n "${BIGTABLE:-}" ]; then
	begin "Google's emulator: $BIGTABLE"
	"$BIGTABLE" --host 127.0.0.1 --port $((BIGTABLE_PORT + 1)) &
	google=$!
	export BIGTABLE_EMULATOR_HOST="127.0.0.1:$((BIGTABLE_PORT + 1))"
fi

cd "$T"
cat >tailrace.yaml <<-EOF
	pipeline: shop
	source: {region: eu-west-1}
	bigtable: {project: local, instance: local}
	queue: {dir: ./tailrace-data}
	admin: {listen: "127.0.0.1:$ADMIN"}
	tables:
	- {source: Products, target: products}
EOF
printf 'project = local\ninstance = local\n' >"$T/.cbtrc" # as the flags below say: cbt warns without it
row() { # cbt talks about credentials that an emulator does not want; what it said is shown if a step fails
	HOME=$T cbt -project local -instance local read products columns='d:.*' cells-per-column=1 2>>"$T/cbt.log"
}

begin 'table, schema, check'
aws dynamodb create-table --table-name Products \
	--attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S \
	--key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE --billing-mode PAY_PER_REQUEST \
	--stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES >/dev/null
code=0; replicator check --config tailrace.yaml || code=$?
[ $code -eq 3 ] || fail "check without the Bigtable tables: exit $code, want 3"
code=0; replicator schema --config tailrace.yaml --diff || code=$?
[ $code -eq 4 ] || fail "schema --diff: exit $code, want 4"
replicator schema --config tailrace.yaml --apply
replicator schema --config tailrace.yaml --diff
replicator check --config tailrace.yaml

begin 'run: a put arrives'
"$REPLICATOR" run --config tailrace.yaml 2>"$T/run.log" & # no function: $! must be the daemon itself
daemon=$!
aws dynamodb put-item --table-name Products --item '{"pk":{"S":"hats"},"sk":{"S":"fedora"},"price":{"N":"12.50"}}'
replicator status --config tailrace.yaml --wait applied=now --timeout 30s
row | grep -q '^hats#fedora' || fail "no row: $(row)"
row | grep -q '"12.5"' || fail "no price: $(row)"

begin 'explain and dump say the same'
replicator explain --key '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}' --show-data --json | jq -e '.rows[0].row=="hats#fedora" and .rows[0].cells[0].value=="12.5"' >/dev/null
replicator queue dump --key '{"sk":{"S":"fedora"},"pk":{"S":"hats"}}' | jq -e 'select(.kind=="change") | .op=="INSERT"' >/dev/null

begin 'pause and resume'
replicator pause --table Products
replicator status --json | jq -e '.tables[0].state=="paused" and (.ready|not)' >/dev/null
aws dynamodb put-item --table-name Products --item '{"pk":{"S":"hats"},"sk":{"S":"bowler"},"price":{"N":"30"}}'
replicator resume --table Products
replicator status --wait applied=now --timeout 60s
row | grep -q '^hats#bowler' || fail "no row after resume: $(row)"

begin 'a delete arrives'
aws dynamodb delete-item --table-name Products --key '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}'
aws dynamodb delete-item --table-name Products --key '{"pk":{"S":"hats"},"sk":{"S":"bowler"}}'
replicator status --config tailrace.yaml --wait applied=now --timeout 30s
[ -z "$(row)" ] || fail "rows are left: $(row)"

begin 'kill -9: nothing is lost'
aws dynamodb put-item --table-name Products --item '{"pk":{"S":"hats"},"sk":{"S":"cap"},"price":{"N":"5"}}'
kill -9 $daemon
wait $daemon || true
"$REPLICATOR" run --config tailrace.yaml 2>>"$T/run.log" &
daemon=$!
replicator status --config tailrace.yaml --json --wait applied=now --timeout 60s |
	jq -e '.ready and ([.tables[].gaps]|add)==0 and ([.tables[].dead_letters]|add)==0' >/dev/null
row | grep -q '^hats#cap' || fail "no row after the kill: $(row)"
replicator dlq list

begin 'SIGTERM: ends by itself'
kill -TERM $daemon
wait $daemon || fail "run ended with $?"
daemon=''
replicator status | grep -q 'Everything written before'
echo 'acceptance: all steps passed'
