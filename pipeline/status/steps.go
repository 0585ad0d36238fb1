package status

import (
	"maps"
	"strconv"
	"strings"
)

// step is the next step of a verdict: what an operator does about what a rule found.
type step string

// The steps. One of a state that has several is named after what distinguishes it.
const (
	stepGap              step = "gap"
	stepFull             step = "full"
	stepFullAway         step = "full_bigtable_away"
	stepHalt             step = "halt"
	stepHaltHeld         step = "halt_held"
	stepHaltMany         step = "halt_many"
	stepHaltMissing      step = "halt_missing"
	stepHaltPremise      step = "halt_premise"
	stepHaltUnread       step = "halt_log_unread"
	stepHaltMapping      step = "halt_mapping"
	stepHaltLost         step = "halt_log_lost"
	stepHaltRefused      step = "halt_refused"
	stepSinkHalted       step = "sink_halted"
	stepAway             step = "away"
	stepRefused          step = "refused"
	stepRetention        step = "retention"
	stepNoOwner          step = "no_owner"
	stepStarting         step = "starting"
	stepNoTable          step = "no_table"
	stepPaused           step = "paused"
	stepHealing          step = "healing"
	stepHealingRefused   step = "healing_refused"
	stepBehind           step = "behind"
	stepBehindCertified  step = "behind_certified"
	stepDiffers          step = "differs"
	stepDiffersArchive   step = "differs_archive"
	stepDiffersContinual step = "differs_continual"
	stepDoubt            step = "doubt"
	stepLetters          step = "letters"
	stepDeletedRead      step = "deleted_read"
	stepDeletedApplied   step = "deleted_applied"
	stepDeletedRetire    step = "deleted_retire"
	stepDeletedUnread    step = "deleted_unread"
	stepNotChosen        step = "not_chosen"
	stepStreamOff        step = "stream_off"
	stepLate             step = "late"
	stepCopyBegins       step = "copy_begins"
	stepCopying          step = "copying"
	stepCopyHeld         step = "copy_held"
	stepNotReady         step = "not_ready"
	stepNotStored        step = "not_stored"
	stepNote             step = "note"
	stepThrottled        step = "throttled"
	stepThrottledCalls   step = "throttled_calls"
	stepFenced           step = "fenced"
	stepCertified        step = "certified"
	stepElsewhere        step = "elsewhere"
	stepNotCopied        step = "not_copied"
	stepNothing          step = "nothing"
)

// steps are the texts, in which {table} is the source table and {file} the file of a continuous
// comparison, {entry} the log entry of a refused change, {hint} what ends an error. A step stands
// here and nowhere else, so that a test can execute each.
var steps = map[step]string{
	stepGap:      "`replicator gaps list --table {table}`, then `replicator repair --gaps --table {table}`",
	stepFull:     "`replicator status --table {table}` says which sink is behind; or raise `queue.max_bytes`",
	stepFullAway: "bring Bigtable back (`replicator check`), or raise `queue.max_bytes` and restart",
	stepHalt:     "mend the cause, then `replicator resume --table {table}`",
	stepHaltHeld: "`replicator queue dump --table {table} --kind change --from {entry} --limit 10 --show-data` " +
		"begins with what was refused; mend the cause, then `replicator resume --table {table}`",
	stepHaltMany: "mend the cause: each table is tried again every minute",
	stepHaltMissing: "`replicator schema --apply`; the table goes on by itself within a minute; what was " +
		"deleted has taken its cells along, and `replicator verify` names them",
	stepHaltPremise: "the command that the cause names; writing goes on by itself within two minutes",
	stepHaltUnread:  "bring the volume of the queue back; the table goes on by itself within a minute",
	stepHaltMapping: "`replicator mapping diff` says what the change does; the file is read again within a " +
		"minute, once the mapping is put back or accepted",
	stepHaltLost: "bring the volume of the queue back; where it is gone, `replicator recover --all`; then start " +
		"`replicator run` where it has ended",
	stepHaltRefused: "as the cause says; `replicator check` shows whether anything is left to do",
	stepSinkHalted:  "mend the cause; `replicator resume --table {table}` tries at once",
	stepAway:        "`replicator check` tests the connection and the permissions",
	stepRefused:     "{hint}; `replicator check` tests credentials and permissions",
	stepRetention:   "`replicator status --table {table}` says what holds reading up",
	stepNoOwner: "is a `replicator run` running, and what does its log say? `replicator check` tests what it " +
		"needs",
	stepStarting: "wait; `replicator check` if it lasts for minutes",
	stepNoTable:  "`replicator check`",
	stepPaused:   "`replicator resume --table {table}`",
	stepHealing:  "wait; `replicator status --watch` shows the progress",
	stepHealingRefused: "`replicator explain --table {table} --key NAME=…` says why one is refused; change the items " +
		"or the mapping, and the comparison ends by itself",
	stepBehind: "stop the writers; `replicator cutover --undo` lets Bigtable have them, then cut over again",
	stepBehindCertified: "let the writers write to Bigtable, and carry these items over by the application " +
		"(`replicator status --table {table}` names their hashes)",
	stepDiffers: "`replicator repair --gaps --table {table}`",
	stepDiffersArchive: "`replicator gaps heal --sink archive --from-export …`, or `replicator gaps clear ID " +
		"--sink archive`, for each of `replicator gaps list --table {table}`",
	stepDiffersContinual: "`replicator repair --from {file}`",
	stepDoubt:            "`replicator verify --table {table}` ends this when it finds everything equal",
	stepLetters:          "`replicator dlq list --table {table}`",
	stepDeletedRead: "wait: what is left in its stream is read and applied first; then `replicator status` says " +
		"how to retire it",
	stepDeletedApplied: "everything is applied: take it out of the configuration, restart `replicator run`, " +
		"then `replicator table retire --table {table}`",
	stepDeletedRetire: "`replicator table retire --table {table}`",
	stepDeletedUnread: "what Bigtable has is the table as of `applied_through` in `replicator status --json`; " +
		"when that is noted, `replicator table retire --table {table}`",
	stepNotChosen: "give it its tags back; or write it under `except`, restart, and then `replicator table " +
		"retire --table {table}`",
	stepStreamOff: "`aws dynamodb update-table --table-name {table} --stream-specification " +
		"StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES`: reading goes on by itself, and a gap is recorded for " +
		"what was written meanwhile; was the table deleted, `replicator status` shows that within a minute",
	stepLate:       "`replicator status --watch`; `replicator check` tests what it depends on",
	stepCopyBegins: "wait",
	stepCopying:    "wait; `replicator copy pause --table {table}` holds it",
	stepCopyHeld:   "`replicator copy resume --table {table}`",
	stepNotReady:   "`replicator check` tests what the table depends on",
	stepNotStored: "the log of `replicator run` says why; `replicator check` tests NATS, and the room for the " +
		"log",
	stepNote: "`replicator check`",
	stepThrottled: "look for other readers of the stream: DynamoDB allows two per shard; `replicator status " +
		"--watch`",
	stepThrottledCalls: "`replicator status --watch`; look for other callers of the account",
	stepFenced:         "`replicator cutover --table {table}` goes on to the certificate",
	stepCertified: "once it does, `replicator table retire --table {table}`; to go back before, `replicator " +
		"cutover --undo`",
	stepElsewhere: "`replicator status` tells it of all tables, as their owner's page does",
	stepNotCopied: "nothing, as the configuration has it; `replicator repair --table {table}` copies them",
	stepNothing:   "nothing to do",
}

// of returns the text of a step for a table.
func (s step) of(t *Table) string {
	file := ""
	if t.Verify != nil {
		file = t.Verify.File
	}
	entry := strconv.FormatUint(t.HeldEntry, 10)
	return strings.NewReplacer("{table}", t.Source, "{file}", file, "{entry}", entry).Replace(steps[s])
}

// Steps returns the texts of all steps by name, as templates: {table} is a source table, {file} a
// file of differences.
func Steps() map[string]string {
	all := map[string]string{}
	for name, text := range maps.All(steps) {
		all[string(name)] = text
	}
	return all
}
