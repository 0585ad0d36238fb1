#!/bin/sh
# Plays twelve incidents of a night on call against `replicator run`, and does what `replicator status` prints as the
# next step. Each incident has servers, a volume and a daemon of its own.
#
#   test/incidents.sh                    builds bin/replicator and plays all
#   test/incidents.sh gap log_full       plays these; --list prints the names
#   REPLICATOR=/path/to/replicator       that one instead of building
#   PORTS=18100                          the first of 20 ports for each of JOBS
#   JOBS=4                               so many incidents at the same time
#   KEEP=1                               keep the directory
#
# Of each incident this is asserted, in `status --json` and in the text of `status`: the state, the table, the code of
# the halt if there is one, that `since` is the time at which it began, and the next step. A next step that is a command
# is taken from the output and executed as it is printed; else the script does what a person would. Then the state must
# go, the pipeline must be ready, and `replicator verify` must find every cell equal. Needs curl, jq, and GNU's date and timeout.
set -eu
incidents='bigtable_away nats_away bucket_away throttled log_full gap dead_letter lost_volume expired_credentials
wrong_mapping two_daemons deleted_table'
if [ "${1:-}" = --list ]; then
	# shellcheck disable=SC2086 # one name a line
	printf '%s\n' $incidents
	exit 0
fi
missing() { echo "incidents: $1 is not in PATH" >&2; exit 3; }
command -v jq >/dev/null || missing jq
command -v curl >/dev/null || missing curl
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${REPLICATOR:-}" ]; then
	REPLICATOR=$root/bin/replicator
	make -s -C "$root" build
fi
T=$(mktemp -d)
# A printed command begins with `replicator`, whatever the program's file is called.
mkdir "$T/bin"
ln -s "$REPLICATOR" "$T/bin/replicator"
PATH=$T/bin:$PATH
export TZ=UTC NO_COLOR=1 AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=key

# --- servers ---

# start NAME COMMAND... starts a process; its id is in the variable NAME, its output in the file NAME.log.
start() {
	name=$1
	shift
	"$@" >>"$name.log" 2>&1 &
	eval "$name=\$!"
	pids="$pids $!"
}

# end PID SIGNAL ends a process and waits for it.
end() {
	kill "-$2" "$1"
	wait "$1" 2>/dev/null || true
}

# servers NAME FIRST starts a sandbox whose ports begin at FIRST, and waits until it is ready. It keeps what it holds, so
# it can be started again.
servers() {
	rm -f "$1.ready"
	start "$1" replicator sandbox --dir "$1" --ready-file "$PWD/$1.ready" --seed 7 --dynamodb "127.0.0.1:$2" \
		--bigtable "127.0.0.1:$(($2 + 1))" --nats "127.0.0.1:$(($2 + 2))" --s3 "127.0.0.1:$(($2 + 3))"
	until [ -s "$1.ready" ]; do
		eval "kill -0 \$$1" 2>/dev/null || fail "the servers do not start: $(tail -n 2 "$1.log")"
		sleep 0.1
	done
}

# await WHAT COMMAND... waits until the command succeeds. Two minutes without that fail the incident.
await() {
	what=$1 until=$(($(date +%s) + ${PATIENCE:-120}))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt $until ] || fail "still not so: $what"
		sleep 0.1
	done
}

dynamodb() {
	curl -fsS "localhost:$port" -H "X-Amz-Target: DynamoDB_20120810.$1" -H 'Content-Type: application/x-amz-json-1.0' \
		--user any:key --aws-sigv4 aws:amz:us-east-1:dynamodb -d "$2" >/dev/null
}
fault() { curl -fsS "localhost:${3:-$port}/_sandbox/$1" -d "${2:-{\}}" >/dev/null; }
table() {
	dynamodb CreateTable "{\"TableName\":\"$1\",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":[{\"AttributeName\":\"id\",
		\"AttributeType\":\"S\"}],\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}],
		\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}"
}
# put TABLE ID... writes an item of each id.
put() {
	of=$1
	shift
	for id; do dynamodb PutItem "{\"TableName\":\"$of\",\"Item\":{\"id\":{\"S\":\"$id\"},\"price\":{\"N\":\"${price:-12.5}\"}}}"; done
}

delete() { dynamodb DeleteItem "{\"TableName\":\"$1\",\"Key\":{\"id\":{\"S\":\"$2\"}}}"; }

# --- the pipeline ---

# config LINES... writes the configuration of tables Orders and Users with further lines; the keys that a line gives
# stand in place of those here.
config() {
	{
		echo 'pipeline: shop'
		for key in "source: {region: us-east-1, endpoint: \"http://127.0.0.1:$port\", idle_poll: 200ms}" \
			"bigtable: {project: local, instance: local, endpoint: \"127.0.0.1:$((port + 1))\"}" \
			'queue: {dir: ./volume, max_bytes: 64MiB}' "admin: {listen: \"127.0.0.1:$((port + 9))\"}" \
			'testing: {date_trust: 1ns, claim_ttl: 3s, listing: 2s, describe: 2s}' \
			'tables: [{source: Orders, target: orders}, {source: Users, target: users}]' "$@"; do echo "$key"; done |
			awk -F: '{ if (!($1 in line)) { order[++n] = $1 } line[$1] = $0 } END { for (i = 1; i <= n; i++) print line[order[i]] }'
	} >tailrace.yaml
}

# run starts the daemon.
run() { start daemon replicator run; }

# begin starts servers and the pipeline with a few items, and waits until it is ready.
begin() {
	servers main "$port"
	table Orders
	table Users
	config "$@"
	replicator schema --apply >schema.log
	put Orders o1 o2 o3
	put Users u1
	run
	ready
}

# look keeps what status prints in status.json and status.txt.
look() {
	replicator status --json >status.json 2>status.err
	replicator status >status.txt 2>>status.err
}
says() { jq -e "$1" status.json >/dev/null; }

# is STATE: both outputs have the state; it may have changed between them.
is() { look && says ".verdict.state == \"$1\"" && sed -n 2p status.txt | grep -qiE "^$1(:| since )"; }
ready() { await 'the pipeline is ready' is_ready; }
is_ready() { is healthy && says '.ready and .verdict.ready'; }

# shows STATE TABLE CODE NEXT waits for the state, and asserts the table, the code of its halt, since, and a part of the next
# step. BEGAN is the time before the cause; where it is empty, nothing records it, and none may be shown.
shows() {
	if [ -n "$began" ]; then
		await "status shows $1, and since when" dated "$1"
	else
		await "status shows $1" is "$1"
	fi
	cat status.txt
	[ "$1" = throttled ] || says '(.ready or .verdict.ready) | not' || fail "$1, and ready" # slow is not red
	[ "$(jq -r '.verdict.table // ""' status.json)" = "$2" ] || fail "it is about $(jq .verdict.table status.json), not $2"
	[ -z "$3" ] || says "any(.tables[]; .source == \"$2\" and .halt_code == \"$3\")" ||
		fail "the halt has the code $(jq -c '[.tables[].halt_code]' status.json), not $3"
	next=$(jq -r .verdict.next status.json)
	case $next in *"$4"*) ;; *) fail "the next step is: $next; not: $4" ;; esac
	sed -n 2p status.txt | grep -qF "Next: $next." || fail 'the text has another next step'
	since=$(since)
	if [ -z "$began" ]; then
		[ "$since" = unknown ] || fail "since $since, which nothing records"
		return 0
	fi
	[ "$since" -ge "$began" ] && [ "$since" -le "$(clock)" ] || fail "since $since, but it began after $began, and it is $(clock)"
	sed -n 2p status.txt | grep -qF " since $(date -u -d "@$since" +%H:%M:%SZ)" || fail 'the text has another since'
	await "$1 is shown again" dated "$1"
	[ "$(since)" = "$since" ] || fail "$1 was since $since, and a moment later: $(sed -n 2p status.txt)"
}
# dated STATE: with since when. Some states begin for the daemon a moment later than for the command, which has no since then.
dated() { is "$1" && [ "$(since)" != unknown ]; }
since() { jq -r '.verdict.since // "" | if . == "" then "unknown" else sub("\\.[0-9]+"; "") | fromdate end' status.json; }

# step N prints the Nth command of the next step.
step() { printf '%s\n' "$next" | grep -o '`replicator [^`]*`' | tr -d '`' | sed -n "$1p"; }

# obey CODE COMMAND executes a printed command, shows it with what it prints, and fails on another exit code.
obey() {
	[ -n "$2" ] || fail "there is no such command in: $next"
	echo "\$ $2"
	code=0
	sh -c "$2" >obeyed.txt 2>&1 </dev/null || code=$?
	cat obeyed.txt
	echo $code | grep -qxE "$1" || fail "exit code $code, not $1, of: $2"
}
printed() { grep -q "$1" obeyed.txt || fail "it does not print: $1"; }

# equal ends an incident: ready, and every cell equal.
equal() {
	ready
	replicator status --wait applied=now --timeout 120s >/dev/null
	replicator verify >verify.txt 2>&1 || fail "verify: $(cat verify.txt)"
	cat verify.txt
	kill -TERM "$daemon"
	wait "$daemon" || fail "the daemon ends with $?"
}

# back fails unless the log of the daemon says that a service is back.
back() { grep -q "\"a service is back\",\"service\":\"$1\",\"after\":" daemon.log || fail "the log does not say that $1 is back"; }

# clock prints the time of the sandbox; now notes it in BEGAN.
clock() { curl -fsS "localhost:$port/_sandbox/clock" -d '{}' | jq '.result.now | sub("\\.[0-9]+"; "") | fromdate'; }
now() { began=$(clock); }
fail() { echo "incidents: $incident: $*" >&2; exit 1; }

# --- the incidents ---

# Another process serves Bigtable, and stands still.
play_bigtable_away() {
	servers away $((port + 10))
	begin "bigtable: {project: local, instance: local, endpoint: \"127.0.0.1:$((port + 11))\", timeout: 2s}"
	now
	kill -STOP "$away"
	put Orders o4 o5
	shows 'Bigtable away' '' '' '`replicator check` tests the connection and the permissions'
	obey 3 "$(step 1)"
	printed 'error: bigtable: reach bigtable: '
	kill -CONT "$away"
	equal
	back Bigtable
}

play_nats_away() {
	servers away $((port + 10))
	begin "queue: {url: \"nats://127.0.0.1:$((port + 12))\", max_bytes: 64MiB}" 'scratch: ./scratch'
	now
	end "$away" TERM
	put Orders o4 o5
	shows 'NATS away' '' '' '`replicator check` tests the connection and the permissions'
	obey 3 "$(step 1)"
	printed 'error: queue: connect to the queue: no server can be reached'
	servers away $((port + 10))
	equal
	back NATS
}

play_bucket_away() {
	mkdir -p main/exports/bucket
	export AWS_ENDPOINT_URL_S3="http://127.0.0.1:$((port + 3))"
	begin 'archive: {url: "s3://bucket/archive?region=us-east-1", classes: [ttl, user], roll: 1s, max_bytes: 64MiB}' \
		'tables: [{source: Orders, target: orders, on_ttl_expiry: archive}, {source: Users, target: users}]'
	now
	mv main/exports/bucket elsewhere
	delete Orders o3
	put Orders o4 # Bigtable goes on
	shows 'archive halted' Orders archive_missing '`replicator resume --table Orders` tries at once'
	says '.tables[0].state == "running" and .tables[0].halt_sink == "archive.objects"' || fail 'the table itself is halted'
	mv elsewhere main/exports/bucket
	obey 0 "$(step 1)"
	equal
	obey 0 'replicator archive verify'
}

# Other readers take the stream's calls, and are stopped.
play_throttled() {
	begin
	now
	fault throttle '{"operation":"GetRecords","per_second":1}'
	put Orders o4 o5
	shows throttled Orders '' 'look for other readers of the stream'
	obey 124 "timeout -s INT 3 $(step 1)"
	printed '^Throttled since'
	fault withdraw '{"effect":"throttle"}'
	equal
}

# Two large values change places, so that each change brings both of them into the log.
play_log_full() {
	servers away $((port + 10))
	begin "bigtable: {project: local, instance: local, endpoint: \"127.0.0.1:$((port + 11))\", timeout: 2s}"
	now
	kill -STOP "$away"
	for seed in 1 2; do
		awk -v seed=$seed 'BEGIN { srand(seed); abc = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
			printf "{\"TableName\":\"Orders\",\"Item\":{\"id\":{\"S\":\"big\"},\"big\":{\"B\":\""
			for (i = 0; i < 500000; i++) printf "%s", substr(abc, 1 + int(64 * rand()), 1)
			printf "\"}}}" }' >big.$seed
	done
	until is 'log full'; do
		for seed in 1 2 1 2 1 2 1 2; do dynamodb PutItem @big.$seed; done
	done
	shows 'log full' Orders '' 'bring Bigtable back (`replicator check`), or raise `queue.max_bytes` and restart'
	obey 3 "$(step 1)"
	printed 'error: bigtable: reach bigtable: '
	kill -CONT "$away"
	equal
}

# The replicator was away for more than a day.
play_gap() {
	begin 'tables: [{source: Orders, target: orders}]'
	end "$daemon" KILL
	price=13 put Orders o2 o4
	now
	fault advance '{"by":"25h"}'
	run
	while :; do
		shows gap Orders '' '`replicator gaps list --table Orders`, then `replicator repair --gaps --table Orders`'
		obey 0 "$(step 1)"
		printed ' open '
		hasten &
		hastens=$!
		obey '0|4' "$(step 2)"
		wait $hastens
		[ $code -eq 4 ] || break
		printed 'another gap of Orders was found' # a shard with its own gap was read later
	done
	equal
}
# hasten moves the clock once a gap is being healed: the comparison waits until what it writes is newer than all before.
hasten() {
	await 'the gap is being healed' sh -c "replicator gaps list --json | grep -q '\"state\":\"healing\"'"
	fault advance '{"by":"3m"}'
}

play_dead_letter() {
	begin
	now
	fault bigtable_refuse_row '{"prefix":"bad"}'
	put Orders bad o4
	shows 'dead letters' Orders '' '`replicator dlq list --table Orders`'
	obey 0 "$(step 1)"
	printed 'bigtable .* refused '
	next=$(grep '^Next: ' obeyed.txt)
	fault calm
	obey 0 "$(step 1)"
	equal
}

play_lost_volume() {
	began=''
	begin
	end "$daemon" KILL
	rm -rf volume
	put Orders o4
	run
	code=0
	wait "$daemon" || code=$?
	[ $code -eq 3 ] || fail "run on an empty volume: exit code $code, not 3"
	shows halted Orders log_lost 'bring the volume of the queue back; where it is gone, `replicator recover --all`; then start `replicator run`'
	obey 2 "$(step 1)"
	printed 'repeat it with --yes'
	obey 0 "$(step 1) --yes"
	[ "$(step 2)" = 'replicator run' ] || fail "the second step is $(step 2)"
	run
	await 'the table is compared' is healing
	fault advance '{"by":"3m"}' # it waits until what it writes is newer than all before
	equal
}

play_expired_credentials() {
	begin
	now
	fault expired
	shows 'DynamoDB refuses' '' '' 'the session token has expired: renew it'
	says '.verdict.cause | contains("ExpiredToken")' || fail 'the cause is not named'
	says 'all(.tables[]; .state == "running")' || fail 'a table is halted'
	obey 3 "$(step 1)"
	printed ExpiredToken
	fault withdraw '{"effect":"expired"}'
	put Orders o4
	equal
	back DynamoDB
}

play_wrong_mapping() {
	echo 'preset: default' >orders.yaml
	begin 'tables: [{source: Orders, target: orders, mapping: orders.yaml}, {source: Users, target: users}]' \
		'testing: {date_trust: 1ns, claim_ttl: 3s, listing: 2s, describe: 2s, retry_halted: 3s}'
	end "$daemon" TERM
	printf 'families: {d: {max_versions: 1}}\nrules:\n- {name: other, row: "order-{id}", cells: [{attrs: all, except: [id], to: "d:{attr}"}]}\n' >orders.yaml
	now
	put Orders o4
	put Users u2 # the other table goes on
	run
	shows halted Orders mapping '`replicator mapping diff` says what the change does'
	obey 4 "$(step 1)"
	echo 'preset: default' >orders.yaml
	equal
}

play_two_daemons() {
	begin
	code=0
	"$REPLICATOR" run >second.log 2>&1 || code=$?
	cat second.log
	[ $code -eq 3 ] || fail "a second daemon: exit code $code, not 3"
	grep -q "^replicator run: open the log: lock volume: store is in use by another process (pid $daemon)$" second.log || fail 'it does not name the volume and the process'
	is_ready || fail "the first daemon is disturbed: $(cat status.txt)"
	put Orders o4
	grep -q "  next: the process with that pid .* stop it" second.log || fail 'it has no next step'
	end "$daemon" TERM
	run
	equal
}

play_deleted_table() {
	begin
	now
	dynamodb DeleteTable '{"TableName":"Users"}'
	put Orders o4
	shows deleted Users '' retire
	await 'all is applied' applied
	cat status.txt
	next=$(jq -r .verdict.next status.json)
	config 'tables: [{source: Orders, target: orders}]'
	end "$daemon" TERM
	[ "$(step 1)" = 'replicator run' ] || fail "the first step is $(step 1)"
	run
	ready
	obey 2 "$(step 2)"
	printed 'repeat it with --yes'
	obey 0 "$(step 2) --yes"
	equal
}
applied() { is deleted && says '.verdict.next | startswith("everything is applied: take it out of the configuration, restart")'; }

# --- all of them ---

# play NAME PORT plays one incident in a directory of its own.
play() (
	incident=$1 port=$2 pids=''
	mkdir "$T/$1"
	cd "$T/$1"
	trap 'for pid in $pids; do kill -CONT "$pid" || :; kill "$pid" || :; done 2>/dev/null; wait' EXIT
	"play_$1" >out 2>&1
)
JOBS=${JOBS:-4} PORTS=${PORTS:-18100}
[ $# -gt 0 ] || eval "set -- $(echo $incidents)"
finish() {
	trap - EXIT INT TERM
	wait
	[ -n "${KEEP:-}" ] || [ -e "$T/failed" ] || rm -rf "$T"
}
trap finish EXIT
trap 'exit 130' INT TERM
# lane N plays each JOBSth incident, one after the other. (`play || …` would take `set -e` away inside of it.)
lane() {
	lane=$1 nth=0
	shift
	for name; do
		nth=$((nth + 1))
		[ $((nth % JOBS)) -eq "$lane" ] || continue
		began=$(date +%s)
		play "$name" $((PORTS + 20 * lane)) &
		if wait $!; then
			echo "ok      $name ($(($(date +%s) - began)) s)"
		else
			echo "FAILED  $name, in $T/$name: $(tail -n 1 "$T/$name/out")"
			echo "$name" >>"$T/failed"
		fi
	done
}
lane=0
while [ $lane -lt "$JOBS" ]; do
	lane $lane "$@" &
	lane=$((lane + 1))
done
wait
[ ! -e "$T/failed" ]
