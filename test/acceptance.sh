#!/bin/sh
# The session of a user: demo, sandbox, the AWS CLI, cbt and jq. Needs `replicator` in PATH (make acceptance).
#
# PORTS=18000,18086,14222,19464 moves the servers. BIGTABLE=/path/to/cbtemulator puts Google's emulator in the place of
# the sandbox's Bigtable.
set -eu

for tool in replicator aws cbt jq; do
	command -v "$tool" >/dev/null || { echo "acceptance: $tool is not in PATH" >&2; exit 3; }
done
PORTS=${PORTS:-8000,8086,4222,9464}
IFS=, read -r DYNAMODB BIGTABLE_PORT NATS ADMIN <<-EOF
	$PORTS
EOF
T=$(mktemp -d)
sandbox='' daemon='' emulator=''
finish() {
	code=$?
	for pid in $daemon $emulator $sandbox; do kill "$pid" 2>/dev/null || true; done
	wait
	if [ $code -eq 0 ]; then rm -rf "$T"; else
		echo "acceptance: FAILED in step: $step (left in $T)" >&2
		tail -n 20 "$T/run.log" 2>/dev/null >&2 || true
	fi
	exit $code
}
trap finish EXIT
trap 'exit 1' INT TERM

begin() { step=$1; echo "== $step"; }
fail() { echo "acceptance: $*" >&2; exit 1; }

begin 'demo: kills on the way, every cell equal'
if [ "${DEMO:-1}" = 1 ]; then
	replicator demo --duration 20s --rate 2000 --seed 7 --json | tail -1 |
		jq -e '.equal and .differences==0 and .rows>0 and .kills>=1' >/dev/null
fi

begin 'sandbox: three servers'
replicator sandbox --dir "$T/sandbox" --ready-file "$T/ready" \
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
	emulator=$!
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
row() { cbt -project local -instance local read products columns='d:.*' cells-per-column=1 2>/dev/null; }

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
replicator run --config tailrace.yaml 2>"$T/run.log" &
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
replicator run --config tailrace.yaml 2>>"$T/run.log" &
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
