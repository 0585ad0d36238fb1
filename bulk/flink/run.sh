#!/bin/sh
# Copies and compares a table on a Flink session cluster with two task managers, and breaks it: `make bulk-flink`. It
# needs Maven and Java 17; both are fetched once into ~/.m2, about 300 MB.
#
#   ITEMS=20000 FILES=40     of the table, and of its export
#   PORTS=18300              the first of ten ports
#   KEEP=1                   keep the directory
#
# In this order: a worker is killed, a task manager is killed and started again, a worker is frozen for 90 s, a task
# manager is frozen for 90 s with its workers going on. Then every file has a mark, the daemon completes the copy, and
# `replicator verify` finds both sides equal; so does a comparison on the cluster. A second table's job is cancelled
# half-way, and its copy is taken back: behind the closed order no row may be written by a worker.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
missing() { echo "bulk-flink: $1 is not in PATH" >&2; exit 3; }
for tool in mvn java jq curl; do command -v $tool >/dev/null || missing $tool; done
make -s -C "$root" build bulk
ITEMS=${ITEMS:-20000} FILES=${FILES:-40} PORTS=${PORTS:-18300}
T=$(mktemp -d)
step=start pids=''
begin() { step=$1; echo "== $step"; }
fail() { echo "bulk-flink: $*" >&2; exit 1; }
finish() {
	code=$?
	workers | xargs -r kill -9 2>/dev/null || true
	for pid in $pids; do kill -CONT "$pid" 2>/dev/null || true; kill -9 "$pid" 2>/dev/null || true; done
	if [ $code -eq 0 ] && [ -z "${KEEP:-}" ]; then rm -rf "$T"; else echo "bulk-flink: step: $step, files: $T" >&2; fi
	exit $code
}
trap finish EXIT
trap 'exit 1' INT TERM
port() { echo $((PORTS + $1)); }
start() { name=$1; shift; "$@" >>"$T/$name.log" 2>&1 & eval "$name=\$!"; pids="$pids $!"; }
# until WHAT COMMAND... waits up to ten minutes for a command to succeed.
until_true() {
	what=$1; shift
	i=0
	until "$@" >/dev/null 2>&1; do
		i=$((i + 1)); [ $i -lt 1200 ] || fail "not in ten minutes: $what"
		sleep 0.5
	done
}

begin 'Flink: what it needs from Maven'
mkdir -p "$T/conf" "$root/bin"
[ -s "$root/bin/flink.classpath" ] ||
	mvn -q -B -f "$root/bulk/flink/pom.xml" dependency:build-classpath "-Dmdep.outputFile=$root/bin/flink.classpath"
CP=$(cat "$root/bin/flink.classpath")
(cd "$root/bulk" && CGO_ENABLED=0 go build -trimpath -o "$T/boot" github.com/apache/beam/sdks/v2/go/container)
cat >"$T/conf/config.yaml" <<-EOF
	jobmanager: {rpc: {address: 127.0.0.1, port: $(port 0)}}
	rest: {address: 127.0.0.1, port: $(port 1)}
	taskmanager: {numberOfTaskSlots: 1}
	heartbeat: {interval: 2000, timeout: 10000}
	restart-strategy: {type: fixed-delay, fixed-delay: {attempts: 1000, delay: 1 s}}
EOF
OPEN='--add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.net=ALL-UNNAMED'
# shellcheck disable=SC2086 # one option a word
jobmanager() {
	exec java -Xmx400m $OPEN -cp "$CP" org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint \
		--configDir "$T/conf" --executionMode cluster
}
# shellcheck disable=SC2086
taskmanager() {
	exec java -Xmx400m -XX:MaxDirectMemorySize=400m $OPEN -cp "$CP" org.apache.flink.runtime.taskexecutor.TaskManagerRunner \
		--configDir "$T/conf" -D taskmanager.cpu.cores=1 -D taskmanager.memory.task.heap.size=200mb \
		-D taskmanager.memory.task.off-heap.size=64mb -D taskmanager.memory.managed.size=64mb \
		-D taskmanager.memory.network.min=64mb -D taskmanager.memory.network.max=64mb \
		-D taskmanager.memory.framework.heap.size=64mb -D taskmanager.memory.framework.off-heap.size=64mb \
		-D taskmanager.memory.jvm-metaspace.size=200mb -D taskmanager.memory.jvm-overhead.min=64mb \
		-D taskmanager.memory.jvm-overhead.max=64mb
}
# shellcheck disable=SC2086
jobserver() {
	exec java -Xmx600m $OPEN -cp "$CP" org.apache.beam.runners.flink.FlinkJobServerDriver --job-host=127.0.0.1 \
		"--job-port=$(port 2)" "--artifact-port=$(port 3)" --expansion-port=0 "--flink-master=127.0.0.1:$(port 1)" \
		"--flink-conf-dir=$T/conf" "--artifacts-dir=$T/artifacts"
}
flink() { curl -sf "http://127.0.0.1:$(port 1)/$1"; }
slots() { [ "$(flink overview | jq '."slots-total"')" -ge "$1" ]; }
# workers prints the processes of the harness, which no engine ends reliably. The job marks them.
workers() {
	pgrep -f -- --control_endpoint= | while read -r pid; do
		! grep -aq "BULK_FLINK=$T" "/proc/$pid/environ" 2>/dev/null || echo "$pid"
	done
}
cd "$T" # the harness writes files where its task manager runs
start jobmanager jobmanager
start taskmanager1 taskmanager
start taskmanager2 taskmanager
until_true 'two slots' slots 2
start jobserver jobserver

begin "a table of $ITEMS items that are older than its stream"
start servers "$root/bin/replicator" sandbox --ready-file "$T/ready" --dir "$T/sandbox" --dynamodb "127.0.0.1:$(port 4)" \
	--bigtable "127.0.0.1:$(port 5)" --nats "127.0.0.1:$(port 6)" --s3 "127.0.0.1:$(port 7)"
until_true 'the sandbox is ready' [ -f "$T/ready" ]
eval "$("$root/bin/replicator" sandbox env --dynamodb "127.0.0.1:$(port 4)" --bigtable "127.0.0.1:$(port 5)" \
	--nats "127.0.0.1:$(port 6)")"
export AWS_ENDPOINT_URL_S3="http://127.0.0.1:$(port 7)" AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=key AWS_REGION=eu-west-1
call() { curl -sf -H "X-Amz-Target: DynamoDB_20120810.$1" -H 'Content-Type: application/x-amz-json-1.0' \
	-H 'Authorization: AWS4-HMAC-SHA256 Credential=any/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0' -H 'X-Amz-Date: 20260101T000000Z' \
	-d "$2" "$AWS_ENDPOINT_URL_DYNAMODB/"; }
sandbox() { curl -sf -d "$2" "$AWS_ENDPOINT_URL_DYNAMODB/_sandbox/$1" >/dev/null; }
# table NAME makes a table, fills it, and lets ten minutes pass. An export has a file for each partition, and a partition
# takes 1,000 write units.
table() {
	call CreateTable "{\"TableName\":\"$1\",\"AttributeDefinitions\":[{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"}],
		\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],
		\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1000,\"WriteCapacityUnits\":$((FILES * 1000))},
		\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}" >/dev/null
	call UpdateContinuousBackups "{\"TableName\":\"$1\",
		\"PointInTimeRecoverySpecification\":{\"PointInTimeRecoveryEnabled\":true}}" >/dev/null
	awk -v n="$ITEMS" -v table="$1" -v url="$AWS_ENDPOINT_URL_DYNAMODB/" 'BEGIN {
		for (i = 0; i < n; i += 25) {
			if (i) print "next"
			printf "url = \"%s\"\noutput = /dev/null\nsilent\nfail\n", url
			print "header = \"X-Amz-Target: DynamoDB_20120810.BatchWriteItem\""
			print "header = \"Content-Type: application/x-amz-json-1.0\""
			print "header = \"Authorization: AWS4-HMAC-SHA256 Credential=any/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\""
			print "header = \"X-Amz-Date: 20260101T000000Z\""
			printf "data = \"{\\\"RequestItems\\\":{\\\"%s\\\":[", table
			for (k = i; k < i + 25 && k < n; k++)
				printf "%s{\\\"PutRequest\\\":{\\\"Item\\\":{\\\"pk\\\":{\\\"S\\\":\\\"c%d\\\"},\\\"n\\\":{\\\"N\\\":\\\"%d\\\"}}}}", (k > i ? "," : ""), k, k
			print "]}}\""
		}
	}' >"$T/items.curl"
	curl -sf -K "$T/items.curl"
	sandbox advance '{"by":"10m"}'
}
table Orders
curl -sf -X PUT "$AWS_ENDPOINT_URL_S3/backups" >/dev/null
cat >tailrace.yaml <<-EOF
	pipeline: shop
	testing: {date_trust: 1ns}
	source: {region: eu-west-1}
	bigtable: {project: local, instance: local}
	queue: {dir: ./data}
	scratch: ./scratch
	admin: {listen: "127.0.0.1:$(port 8)"}
	tables:
	- {source: Orders, target: orders, backfill: {from: export, bucket: backups, by: workers}}
EOF
r() { "$root/bin/replicator" "$@"; }
r schema --apply
start daemon "$root/bin/replicator" run
ordered() { r status | grep -q 'replicator-bulk copy'; }
until_true 'the order is open' ordered

# bulk NAME COMMAND FLAGS... starts a job on the cluster.
bulk() {
	name=$1; shift
	environment=$(jq -nc --arg boot "$T/boot" --arg s3 "$AWS_ENDPOINT_URL_S3" --arg bt "$BIGTABLE_EMULATOR_HOST" \
		--arg mark "$T" \
		'{command: $boot, env: {AWS_ACCESS_KEY_ID: "any", AWS_SECRET_ACCESS_KEY: "key", AWS_REGION: "eu-west-1",
		AWS_ENDPOINT_URL_S3: $s3, BIGTABLE_EMULATOR_HOST: $bt, BULK_FLINK: $mark}}')
	start "$name" "$root/bin/replicator-bulk" "$@" --runner flink -- "--endpoint=127.0.0.1:$(port 2)" --parallelism=2 \
		--environment_type=PROCESS "--environment_config=$environment"
}
# files prints how many files have marks, by the launcher's own count.
files() { "$root/bin/replicator-bulk" copy --pipeline shop --table "$1" --bigtable local/local --dry-run |
	sed -n 's/^files .* \([0-9]*\) of them copied already$/\1/p'; }
copied() { n=$(files "$1") && [ "${n:-0}" -ge "$2" ]; }

begin 'a worker is killed'
bulk job copy --pipeline shop --table Orders --bigtable local/local
until_true 'files have marks' copied Orders 5
victim=$(workers | head -1)
[ -n "$victim" ] || fail 'there is no worker'
kill -9 "$victim"
begin 'a task manager is killed, and another one starts'
until_true 'files have marks' copied Orders $((FILES / 5))
kill -9 "$taskmanager1"
start taskmanager1 taskmanager
begin 'a worker is frozen for 90 s'
until_true 'files have marks' copied Orders $((FILES * 2 / 5))
frozen=$(workers | tail -1)
[ -n "$frozen" ] || fail 'there is no worker'
kill -STOP "$frozen"; sleep 90; kill -CONT "$frozen" 2>/dev/null || true
begin 'a task manager is frozen for 90 s, its workers are not'
kill -STOP "$taskmanager2"; sleep 90; kill -CONT "$taskmanager2" 2>/dev/null || true
begin 'every file has a mark'
code=0; wait "$job" || code=$?
[ $code -eq 0 ] || fail "the job ended with $code: $(tail -3 job.log)"
r status --wait applied=now --timeout 10m >/dev/null
r verify

begin 'both sides are compared on the cluster'
start verify "$root/bin/replicator" verify --workers s3://backups/compare
until_true 'workers may compare' grep -q 'replicator-bulk verify' verify.log
folder=$(sed -n 's/^ *replicator-bulk verify --comparison //p' verify.log)
bulk compare verify --comparison "$folder"
code=0; wait "$compare" || code=$?
[ $code -eq 0 ] || fail "the job that compares ended with $code: $(tail -3 compare.log)"
code=0; wait "$verify" || code=$?
[ $code -eq 0 ] || fail "verify --workers: exit $code: $(tail -3 verify.log)"
tail -4 verify.log

begin 'a job is cancelled half-way, and its copy is taken back'
table Carts
cat >>tailrace.yaml <<-EOF
	- {source: Carts, target: carts, backfill: {from: export, bucket: backups, by: workers}}
EOF
r schema --apply
kill "$daemon"; wait "$daemon" || true
start daemon "$root/bin/replicator" run
until_true 'the order is open' ordered
bulk cancelled copy --pipeline shop --table Carts --bigtable local/local
until_true 'files have marks' copied Carts $((FILES / 5))
for id in $(flink jobs | jq -r '.jobs[] | select(.status=="RUNNING") | .id'); do
	curl -sf -X PATCH "http://127.0.0.1:$(port 1)/jobs/$id?mode=cancel" >/dev/null
done
code=0; wait "$cancelled" || code=$?
echo "the cancelled job ended with $code: $(tail -1 cancelled.log)"
[ $code -eq 1 ] || copied Carts "$FILES" || fail "exit $code of a job that left files"
r copy takeback --table Carts
r status --wait applied=now --timeout 10m >/dev/null
r verify
# Workers that live on have had two minutes by now. Every item goes, and none may come back.
begin 'nothing is written behind the closed order'
for i in 0 1 2 3 4 5 6 7 8 9; do call DeleteItem "{\"TableName\":\"Carts\",\"Key\":{\"pk\":{\"S\":\"c$i\"}}}" >/dev/null; done
r status --wait applied=now --timeout 10m >/dev/null
sleep 30
r verify
echo 'bulk-flink: all passed'
