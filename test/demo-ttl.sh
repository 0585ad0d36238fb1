#!/bin/sh
# Shows the archive in a minute: items expire, the replicator is killed twice, objects appear, everything is compared
# with the manifests and counted by another reader of Parquet, and an item is brought back.
#
#   make demo-ttl
#
# Needs curl and what builds the replicator. PORTS=18000,18086,14222,19464: other ports.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
command -v curl >/dev/null || { echo 'demo-ttl: curl is not in PATH' >&2; exit 3; }
PORTS=${PORTS:-18000,18086,14222,19464}
IFS=, read -r DYNAMODB BIGTABLE NATS ADMIN <<-EOF
	$PORTS
EOF
replicator() { "$root/bin/replicator" "$@"; }
T=$(mktemp -d)
sandbox='' daemon=''
finish() {
	code=$?
	for pid in $daemon $sandbox; do kill "$pid" 2>/dev/null || true; done
	wait
	if [ $code -eq 0 ]; then rm -rf "$T"; else echo "demo-ttl: FAILED (left in $T)" >&2; fi
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM
bold='' plain=''
[ ! -t 1 ] || [ -n "${NO_COLOR-}" ] || { bold=$(printf '\033[1m') plain=$(printf '\033[0m'); }
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
dynamodb() {
	curl -fsS "localhost:$DYNAMODB" -H "X-Amz-Target: DynamoDB_20120810.$1" -H 'Content-Type: application/x-amz-json-1.0' \
		--user any:key --aws-sigv4 aws:amz:us-east-1:dynamodb -d "$2"
}
control() { curl -fsS "localhost:$DYNAMODB/_sandbox/$1" -d "$2" >/dev/null; }

say 'A table whose items expire, in a sandbox'
"$root/bin/replicator" sandbox --dynamodb "127.0.0.1:$DYNAMODB" --bigtable "127.0.0.1:$BIGTABLE" --nats "127.0.0.1:$NATS" \
	--s3 "127.0.0.1:$((DYNAMODB + 1))" --dir "$T/sandbox" --ready-file "$T/ready" >"$T/sandbox.log" 2>&1 &
sandbox=$!
until [ -s "$T/ready" ]; do kill -0 $sandbox; sleep 0.1; done
eval "$(cat "$T/ready")"
dynamodb CreateTable '{"TableName":"Sessions","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id",
	"AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
	"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}' >/dev/null
dynamodb UpdateTimeToLive '{"TableName":"Sessions","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}' >/dev/null
cat >"$T/tailrace.yaml" <<EOF
pipeline: demo-ttl
source: {region: us-east-1, endpoint: "http://127.0.0.1:$DYNAMODB", idle_poll: 200ms}
bigtable: {project: local, instance: local, endpoint: "127.0.0.1:$BIGTABLE"}
queue: {dir: ./log, max_bytes: 1GiB}
admin: {listen: "127.0.0.1:$ADMIN"}
archive: {url: "file://archive", roll: 1s, max_bytes: 64MiB, columns: {user: {type: string}, pages: {type: int64}}}
testing: {date_trust: 1ns, claim_ttl: 3s, listing: 2s}
tables:
- {source: Sessions, target: sessions, on_ttl_expiry: archive}
EOF
cd "$T"
cat tailrace.yaml
replicator schema --apply >/dev/null
run() { "$root/bin/replicator" run >>"$T/replicator.log" 2>&1 & daemon=$!; }
killed() { kill -9 "$daemon"; wait "$daemon" 2>/dev/null || true; daemon=''; echo 'killed the replicator (-9)'; run; }

# put FROM TO EXPIRES writes sessions, 25 in a call.
put() {
	n=$1
	while [ "$n" -le "$2" ]; do
		last=$((n + 24)) items=''
		while [ "$n" -le "$last" ] && [ "$n" -le "$2" ]; do
			items="$items,{\"PutRequest\":{\"Item\":{\"id\":{\"S\":\"s$n\"},\"user\":{\"S\":\"user $((n % 7))\"},\"pages\":{\"N\":\"$n\"},\"expires\":{\"N\":\"$3\"}}}}"
			n=$((n + 1))
		done
		dynamodb BatchWriteItem "{\"RequestItems\":{\"Sessions\":[${items#,}]}}" >/dev/null
	done
}
# events prints how many events are in objects.
events() { replicator archive list --json 2>/dev/null | sed 's/.*"events":\([0-9]*\).*/\1/' | awk '{n += $1} END {print n + 0}'; }

# await COUNT waits until so many events are in objects.
await() {
	tries=0
	until [ "$(events)" -ge "$1" ]; do
		tries=$((tries + 1)); [ $tries -lt 120 ] || { replicator archive list; replicator status; exit 1; }
		sleep 0.5
	done
	echo "$(events) events are in objects"
}
now=$(date +%s)
run
say '600 sessions, of which 500 expire; the replicator is killed twice'
put 501 600 $((now + 864000))
put 1 250 $((now - 60))
control expire '{}'
await 1
killed
put 251 500 $((now - 60))
control expire '{}'
killed
await 500
say 'The hour is over: a manifest closes it'
control advance '{"by":"70m"}'
tries=0
until replicator archive list --json | grep -q '"state":"closed"' && ! replicator archive list --json | grep -q '"state":"open"'; do
	tries=$((tries + 1)); [ $tries -lt 120 ] || { replicator archive list; replicator status; exit 1; }
	sleep 0.5
done
replicator archive list
replicator archive verify --full
say 'Another reader of Parquet (Apache Arrow) counts'
count=$(cd "$root" && go run ./test/arrowcount "$T/archive")
echo "$count rows"
[ "$count" = 500 ]
say 'Session s42 is wanted back'
replicator archive restore --table Sessions --key id=s42 --ttl +30d
replicator archive restore --table Sessions --key id=s42 --ttl +30d --yes
dynamodb GetItem '{"TableName":"Sessions","Key":{"id":{"S":"s42"}}}' | grep '"s42"'
say "500 items expired · 2 kills · $count events archived, each once · 100 items stay · 1 restored"
