package pipeline

import "github.com/prometheus/client_golang/prometheus"

func tableGauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tailrace_"+name, help, []string{"table"}, nil)
}

// The gauges.
var (
	ready = tableGauge("table_ready",
		"1 while the table progresses or is idle, and nothing is open; also where another process carries it.")
	Owner = tableGauge("table_owner",
		"1 while this process owns the table's log and can show it, or has halted the table and tries again.")
	halted   = tableGauge("table_halted", "1 while the table is halted.")
	premises = tableGauge("settings_wrong",
		"Settings of outside systems (GC rules, app profile, streams, lifecycle) that are not as the table relies on them.")
	sourceLag = tableGauge("source_lag_seconds",
		"Age of the newest moment up to which every shard is read into the log; before there is one, since the start.")
	appliedLag = tableGauge("applied_lag_seconds",
		"Age of the newest moment up to which every change is applied by every sink; before there is one, since "+
			"the start.")
	retention = tableGauge("source_retention_seconds",
		"Time until the oldest unread record of the table may be lost: 24 h less its age.")
	proof = tableGauge("proof_age_seconds",
		"Time since a read of the slowest shard last brought something newer or showed that it is idle: it stays "+
			"small while reading catches up.")
	view = tableGauge("table_view_age_seconds",
		"Age of the look at the log from which the table's gauges are computed.")
	waiting        = tableGauge("unapplied_entries", "Entries of the log that the slowest sink has not applied.")
	pendingChanges = tableGauge("pending_changes",
		"Changes that the log holds and Bigtable has not got yet; not there while it is unknown, after a start "+
			"into a backlog.")
	letters   = tableGauge("dead_letters", "Changes that a sink refused for good and that are not handled yet.")
	gaps      = tableGauge("gaps", "Ranges of the source that were lost and are not accepted yet.")
	differing = tableGauge("gaps_differing",
		"Lost ranges of the source, accepted or not, that are neither healed nor waived for every sink.")
	behind = tableGauge("changes_behind_fence",
		"Changes that the application made in DynamoDB behind the fence of a cutover: Bigtable does not get them. Deletions "+
			"by TTL do not count.")
	copying   = tableGauge("copying", "1 while the copy of the table's older items is not complete.")
	copyStill = tableGauge("copy_still_seconds",
		"Time since the copy of the table's older items last made progress; 0 without a copy, and while it is paused.")
	pending = tableGauge("resync_pending",
		"1 while the whole table is to be compared and repaired: after repair or recover.")
	recovering      = tableGauge("recovering", "1 while the pending resync is that of a new life after a lost log.")
	verifyDifferent = tableGauge("verify_different",
		"Items that the continuous comparison knows to differ; cleared when they are equal again.")
	verifyForeign = tableGauge("verify_foreign_cells",
		"Cells of the target, as the continuous comparison knows, that belong to no item.")
	verifyUnproven = tableGauge("verify_unproven",
		"Items and cells of which the continuous comparison cannot tell whether they are equal, and items that the mapping "+
			"refuses.")
	verifyCycles = tableGauge("verify_cycles", "Cycles of the continuous comparison that are finished.")
	verifyShare  = tableGauge("verify_share",
		"Share of this pass of the continuous comparison, of the direction that has seen less of it, from 0 to 1.")
	verifyUnchecked = tableGauge("verify_unchecked_seconds",
		"Time since which every item and row was compared at least once; not there before the first cycle is finished.")
	ahead   = tableGauge("clock_ahead_seconds", "How far versions run ahead of event time.")
	foreign = tableGauge("log_foreign_messages", "Messages in the log that folded as nothing.")
	hottest = tableGauge("hottest_row_writes_per_second",
		"Writes of the target row that was written most, over the last full ten seconds.")
	largest = tableGauge("largest_row_growth_bytes",
		"Growth of the shared target row that has grown most since this process owns the table; a lower estimate.")

	sinkHalted = prometheus.NewDesc("tailrace_sink_halted",
		"1 while a sink of the archive is halted (archive, archive.objects, archive.subject) and Bigtable goes on, else 0; "+
			"not there for a table without an archive.", []string{"table", "sink"}, nil)
	limitedBy = prometheus.NewDesc("tailrace_limited_by",
		"1 for what limits the table now (latency, bigtable, memory, cpu, source, log, nothing), else 0; not there while "+
			"the table is halted or begins.", []string{"table", "by"}, nil)

	rehearsalSeconds = prometheus.NewDesc("tailrace_rehearsal_seconds",
		"How long each step of the newest rehearsed cutover took that this process was told of; step write_stop is the "+
			"write stop that it expects.", []string{"target", "step"}, nil)
	rehearsalRefusals = prometheus.NewDesc("tailrace_rehearsal_refusals",
		"How many reasons would have refused the cutover at its newest rehearsal.", []string{"target"}, nil)

	failing = prometheus.NewDesc("tailrace_service_failing_seconds",
		"Time since an operation of the service first failed that has not succeeded since; 0 while none fails.",
		[]string{"service"}, nil)
)

// allGauges returns the gauges.
func allGauges() []*prometheus.Desc {
	return []*prometheus.Desc{
		ready, Owner, halted, premises, sourceLag, appliedLag, retention, proof, view, waiting,
		pendingChanges,
		letters, gaps, differing, behind, copying, copyStill, pending, recovering,
		verifyDifferent, verifyForeign, verifyUnproven, verifyCycles, verifyShare, verifyUnchecked,
		ahead, foreign,
		hottest, largest, failing, limitedBy, sinkHalted, rehearsalSeconds, rehearsalRefusals,
	}
}
