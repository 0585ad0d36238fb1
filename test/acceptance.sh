#!/bin/sh
# The session of a user from a fresh clone: demo, sandbox, the AWS CLI, cbt and jq.
#
#   test/acceptance.sh                        builds bin/replicator and runs the session against the sandbox
#   BIGTABLE=cbtemulator test/acceptance.sh   Google's own emulator in the place of the sandbox's Bigtable: a path, a
#                                             name in PATH, or the one in the Google Cloud SDK; skipped where there is none
#   PORTS=18000,18086,14222,19464             other ports for DynamoDB, Bigtable, NATS and admin; the one after
#                                             DynamoDB's is moto's, the one after Bigtable's is the emulator's
#   DEMO=0                                    without the demo
#   OLD=0                                     without the tables that are older than their stream
#
# Tables that are older than their stream are copied, recovered and healed on the sandbox, again on Google's emulator,
# and copied from moto, where moto_server is in PATH. Each time what `aws dynamodb scan` and `cbt read` return is compared.
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
sandbox='' daemon='' google='' moto='' step=start
finish() {
	code=$?
	for pid in $daemon $google $moto $sandbox; do kill "$pid" 2>/dev/null || true; done
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

if [ "$PORTS" != 8000,8086,4222,9464 ] || ! command -v bash >/dev/null; then
	begin "the README's session: skipped, it is for bash and the usual ports"
else
	begin "the README's session, as it is pasted"
	sed -n '/^```sh$/,/^```$/{/^```/!p;}' "$root/README.md" | sed 's/^make build && //' >"$T/session"
	(cd "$root" && PATH="$(dirname "$REPLICATOR"):$PATH" AWS_PAGER='' bash -e "$T/session" >"$T/session.log" 2>&1) ||
		fail "the session of the README ends with an error: $(cat "$T/session.log")"
	for row in 'hats#fedora' 'hats#bowler' '"12.5"'; do
		grep -q "$row" "$T/session.log" || fail "the session of the README shows no $row: $(cat "$T/session.log")"
	done
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
start_emulator() {
	"$1" --host 127.0.0.1 --port $((BIGTABLE_PORT + 1)) &
	google=$!
	export BIGTABLE_EMULATOR_HOST="127.0.0.1:$((BIGTABLE_PORT + 1))"
}
if [ -n "${BIGTABLE:-}" ]; then
	begin "Google's emulator: $BIGTABLE"
	start_emulator "$BIGTABLE"
fi

cd "$T"
cat >tailrace.yaml <<-EOF
	pipeline: shop
	testing: {date_trust: 1ns} # this moves the clock
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

# advance moves the clock of DynamoDB on.
advance() { curl -sf -d "{\"by\":\"$1\"}" "$AWS_ENDPOINT_URL_DYNAMODB/_sandbox/advance" >/dev/null; }

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

begin 'verify: a difference planted with cbt is found, explained, repaired'
replicator verify
HOME=$T cbt -project local -instance local set products 'hats#cap' d:price=999 2>>"$T/cbt.log"
code=0; replicator verify --differences differences.jsonl || code=$?
[ $code -eq 4 ] || fail "verify with a wrong cell: exit $code, want 4"
[ "$(wc -l <differences.jsonl)" -eq 1 ] || fail "differences: $(cat differences.jsonl)"
code=0; said=$(replicator explain --key '{"pk":"hats","sk":"cap"}') || code=$?
[ $code -eq 4 ] || fail "explain of a wrong cell: exit $code, want 4: $said"
echo "$said" | grep -q 'different' || fail "explain: $said"
code=0; replicator cutover --table Products --quiet 2s --rehearse --json >refused.json || code=$?
[ $code -eq 4 ] || fail "rehearsal with a wrong cell: exit $code, want 4: $(cat refused.json)"
jq -e '.refusals[0] | test("differ")' refused.json >/dev/null || fail "rehearsal with a wrong cell: $(cat refused.json)"
advance 2m # a repair is written one minute back, and the item is younger than that
replicator status --wait applied=now --timeout 60s
replicator repair --from differences.jsonl --dry-run
replicator repair --from differences.jsonl
replicator verify
row | grep -q '"5"' || fail "not repaired: $(row)"

begin 'cutover --rehearse: nothing refuses, nothing is left'
replicator pause --table Products
code=0; replicator cutover --table Products --quiet 2s --rehearse --json >refused.json || code=$?
[ $code -eq 4 ] || fail "rehearsal of a paused table: exit $code, want 4: $(cat refused.json)"
jq -e '.refusals[0] | test("paused")' refused.json >/dev/null || fail "rehearsal of a paused table: $(cat refused.json)"
replicator resume --table Products
replicator status --wait applied=now --timeout 60s
files() { find . -type f ! -path '*/jetstream/*' ! -path './sandbox/*' ! -path './.config/*' ! -name rehearsal.json; }
before=$(files | sort)
replicator cutover --table Products --quiet 2s --rehearse
replicator cutover --table Products --quiet 2s --rehearse --json >rehearsal.json
jq -e '.refusals==[] and .items==1 and .write_stop_s>=2' rehearsal.json >/dev/null || fail "rehearsal: $(cat rehearsal.json)"
replicator cutover --check rehearsal.json && fail 'a rehearsal is taken for a certificate'
[ "$(files | sort)" = "$before" ] || fail "before: $before, after: $(files)"
replicator status --json | jq -e '.tables[0].state=="running" and .rehearsals[0].refusals==[]' >/dev/null

begin 'cutover: fence, certificate, check'
replicator cutover --table Products --quiet 2s --out certificate.json
replicator cutover --check certificate.json | grep -q 'products is equal' || fail 'the certificate is not checked'
sed 's/"items": 1/"items": 2/' certificate.json >altered.json
code=0; replicator cutover --check altered.json || code=$?
[ $code -eq 4 ] || fail "check of an altered certificate: exit $code, want 4"
replicator status --json | jq -e '.ready and .tables[0].state=="fenced"' >/dev/null

begin 'SIGTERM: ends by itself'
kill -TERM $daemon
wait $daemon || fail "run ended with $?"
daemon=''
replicator status | grep -q 'Everything written before'

begin 'the day after: table retire'
HOME=$T cbt -project local -instance local set products 'hats#cap' d:price=7 2>>"$T/cbt.log" # the application
row >"$T/before"
replicator table retire --table Products --drop-guards --yes
row | cmp - "$T/before" || fail "the application's rows have changed: $(row)"
left=$(HOME=$T cbt -project local -instance local read products columns='_tr_.*:.*' 2>>"$T/cbt.log")
[ -z "$left" ] || fail "guards are left: $left"
code=0; replicator run 2>"$T/run.log" || code=$?
[ $code -eq 3 ] || fail "run of a retired table: exit $code, want 3"

# --- tables that are older than their stream ---

# old_table makes the table $1, fills it with a hundred items of all types, and only then gives it a stream.
old_table() {
	aws dynamodb create-table --table-name "$1" \
		--attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S \
		--key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE --billing-mode PAY_PER_REQUEST >/dev/null
	for batch in 0 1 2 3; do
		jq -n --arg table "$1" --argjson batch $batch '{($table): [range(25) | . + 25*$batch | {PutRequest: {Item: {
			pk: {S: "old\(. % 7)"}, sk: {S: "\(.)"}, name: {S: "item \(.)"}, price: {N: "\(.).50"}, sold: {BOOL: (. % 2 == 0)},
			image: {B: ("bytes \(.)" | @base64)}, nothing: {NULL: true}, tags: {SS: ["a\(.)", "b"]}, sizes: {NS: ["7"]},
			more: {M: {n: {N: "\(.)"}, list: {L: [{S: "x"}, {N: "1.5"}]}}}, expires: {N: "4102444800"}}}}]}' >"$T/batch.json"
		aws dynamodb batch-write-item --request-items "file://$T/batch.json" >/dev/null
	done
	aws dynamodb update-table --table-name "$1" \
		--stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES >/dev/null
}
put() { aws dynamodb put-item --table-name "$1" --item "{\"pk\":{\"S\":\"$2\"},\"sk\":{\"S\":\"$3\"},\"name\":{\"S\":\"$4\"}}"; }
delete() { aws dynamodb delete-item --table-name "$1" --key "{\"pk\":{\"S\":\"$2\"},\"sk\":{\"S\":\"$3\"}}"; }

# equal fails unless every cell that the items of the table $1 should have is in the table $2 of Bigtable, and no other.
# Without a mapping, a NULL has no cell.
equal() {
	aws dynamodb scan --table-name "$1" --consistent-read | jq -r '
		def plain: to_entries[0] | if .key == "M" then .value | to_entries | sort_by(.key) | from_entries | map_values(plain) elif .key == "L" then .value | map(plain)
			elif .key == "N" or .key == "NS" then .value | if type == "array" then map(tonumber) else tonumber end
			else .value end;
		def text: if has("B") then .B | @base64d elif has("S") then .S else plain | tojson end;
		.Items[] | "\(.pk.S)#\(.sk.S)" as $row | del(.pk, .sk) | to_entries[] |
		select(.value | has("NULL") | not) | "\($row) d:\(.key) \(.value | text | tojson)"
	' | LC_ALL=C sort >"$T/want"
	HOME=$T cbt -project local -instance local read "$2" columns='d:.*' cells-per-column=1 2>>"$T/cbt.log" | awk '
		/^-+$/ { next } /^  d:/ { column = $1; next } /^    / { sub(/^ +/, ""); print row, column, $0; next } { row = $0 }
	' | LC_ALL=C sort >"$T/have"
	[ -s "$T/want" ] || fail "$1 has no items"
	diff "$T/want" "$T/have" >"$T/diff" || fail "$1 and $2 differ: $(grep -c '^<' "$T/diff") cells are missing, \
$(grep -c '^>' "$T/diff") are not in DynamoDB: $(head -n 6 "$T/diff")"
	echo "   equal: $(wc -l <"$T/want") cells"
}

# run_old and end_old start and end the replicator with the configuration old.yaml.
run_old() {
	"$REPLICATOR" run --config old.yaml 2>>"$T/run.log" &
	daemon=$!
}
end_old() {
	kill "$1" $daemon
	wait $daemon || true
	daemon=''
}
wait_old() { replicator status --config old.yaml --json --wait applied=now --timeout 300s | jq -e .ready >/dev/null; }

# old_items copies the table $1 to $2, while it is written.
old_items() {
	begin "old items, $3: run, wait, equal"
	old_table "$1"
	cat >old.yaml <<-EOF
		pipeline: old-$2
		source: {region: us-east-1}
		bigtable: {project: local, instance: local}
		queue: {dir: ./data-$2}
		admin: {listen: "127.0.0.1:$ADMIN"}
		tables:
		- {source: $1, target: $2}
	EOF
	replicator schema --config old.yaml --apply
	replicator check --config old.yaml
	run_old
	put "$1" old3 3 'changed while it is copied'
	delete "$1" old4 4
	wait_old
	equal "$1" "$2"
}

# trim removes all records of the streams. Their times are whole seconds, so the present one has to end first.
trim() {
	advance 1s
	curl -sf -d '{"older_than":"0s"}' "$AWS_ENDPOINT_URL_DYNAMODB/_sandbox/trim" >/dev/null
}

# gap loses changes of the table $1 before they are read.
gap() {
	begin "gap, $3: gaps heal, equal"
	put "$1" old1 1 'the last change that is read before the gap'
	wait_old
	end_old -TERM
	put "$1" old1 1 'changed in the gap'
	delete "$1" old1 8
	trim
	run_old
	replicator status --config old.yaml --watch --timeout 120s --json |
		jq -ne 'first(inputs | select(.tables[0].gaps > 0)) | .ready | not' >/dev/null
	replicator gaps list --config old.yaml
	replicator gaps heal --config old.yaml --wait
	wait_old
	equal "$1" "$2"
	replicator gaps list --config old.yaml --json | jq -e '.state == "healed"' >/dev/null
}

# lost_volume loses the log of the table $1, and with it changes that DynamoDB does not have any more either.
lost_volume() {
	begin "lost volume, $3: recover, equal"
	end_old -KILL
	put "$1" old5 5 'changed before the volume was lost'
	delete "$1" old6 6
	trim
	rm -rf "./data-$2"
	replicator recover --config old.yaml --all --yes # before the start: a replicator that finds its log gone ends
	run_old
	wait_old
	equal "$1" "$2"
}

# old does all that with the table $1 and the target $2. The gap comes first: the versions of a new life are some minutes
# ahead of the clock, and a later gap heals when the clock has passed them.
old() {
	old_items "$@"
	gap "$@"
	lost_volume "$@"
	end_old -TERM
}

if [ "${OLD:-1}" = 1 ]; then
	old Old old "${BIGTABLE:-the sandbox}"
	if [ -z "${BIGTABLE:-}" ]; then
		found=$(emulator cbtemulator)
		if [ -z "$found" ]; then
			begin "Google's emulator: skipped, there is no cbtemulator (gcloud components install bigtable)"
		else
			start_emulator "$found"
			old OldToo old_too "Google's emulator"
		fi
	fi
	if ! command -v moto_server >/dev/null; then
		begin 'moto: skipped, moto_server is not in PATH (pip install "moto[server]")'
	else
		moto_server -H 127.0.0.1 -p $((DYNAMODB + 1)) >"$T/moto.log" 2>&1 &
		moto=$!
		AWS_ENDPOINT_URL=http://127.0.0.1:$((DYNAMODB + 1))
		export AWS_ENDPOINT_URL AWS_ENDPOINT_URL_DYNAMODB=$AWS_ENDPOINT_URL AWS_ENDPOINT_URL_DYNAMODB_STREAMS=$AWS_ENDPOINT_URL
		curl -s --retry 60 --retry-delay 1 --retry-connrefused "$AWS_ENDPOINT_URL/moto-api/data.json" >/dev/null
		old_items OldMoto old_moto moto # its streams cannot be read from a time on: the start falls back
		end_old -TERM
	fi
fi
echo 'acceptance: all steps passed'
