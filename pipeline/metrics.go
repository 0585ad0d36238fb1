package pipeline

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// registerMetrics registers the gauges of the tables; reg may be nil. Labels are the table's source name and nothing
// that grows. What is counted is counted where it happens; every gauge is computed when it is scraped, by collector.
func registerMetrics(reg prometheus.Registerer, p *Pipeline) {
	if reg != nil {
		reg.MustRegister(collector{p})
	}
}

// collector computes the gauges at scrape time, from the same status that /readyz and /status show, so that they never
// disagree, and so that a lag grows while no news arrives.
type collector struct{ p *Pipeline }

func tableGauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tailrace_"+name, help, []string{"table"}, nil)
}

var (
	readyDesc = tableGauge("table_ready",
		"1 while the table progresses or is idle, and nothing is open; also where another process carries it.")
	ownerDesc = tableGauge("table_owner",
		"1 while this process owns the table's log and can show it, or has halted the table and tries again.")
	haltedDesc    = tableGauge("table_halted", "1 while the table is halted.")
	sourceLagDesc = tableGauge("source_lag_seconds",
		"Age of the newest moment up to which every shard is read into the log; before there is one, since the start.")
	appliedLagDesc = tableGauge("applied_lag_seconds",
		"Age of the newest moment up to which every change is applied by every sink; before there is one, since "+
			"the start.")
	retentionDesc = tableGauge("source_retention_seconds",
		"Time until the oldest unread record of the table may be lost: 24 h less its age.")
	proofDesc = tableGauge("proof_age_seconds",
		"Time since a read of the slowest shard last brought something newer or showed that it is idle: it stays "+
			"small while reading catches up.")
	viewDesc = tableGauge("table_view_age_seconds",
		"Age of the look at the log from which the table's gauges are computed.")
	waitingDesc        = tableGauge("unapplied_entries", "Entries of the log that the slowest sink has not applied.")
	pendingChangesDesc = tableGauge("pending_changes",
		"Changes that the log holds and Bigtable has not got yet; not there while it is unknown, after a start "+
			"into a backlog.")
	lettersDesc   = tableGauge("dead_letters", "Changes that a sink refused for good and that are not handled yet.")
	gapsDesc      = tableGauge("gaps", "Ranges of the source that were lost and are not accepted yet.")
	differingDesc = tableGauge("gaps_differing",
		"Lost ranges of the source, accepted or not, that are neither healed nor waived for every sink.")
	copyingDesc   = tableGauge("copying", "1 while the copy of the table's older items is not complete.")
	copyStillDesc = tableGauge("copy_still_seconds",
		"Time since the copy of the table's older items last made progress; 0 without a copy, and while it is paused.")
	pendingDesc = tableGauge("resync_pending",
		"1 while the whole table is to be compared and repaired: after gaps heal, resync or recover.")
	recoveringDesc      = tableGauge("recovering", "1 while the pending resync is that of a new life after a lost log.")
	verifyDifferentDesc = tableGauge("verify_different",
		"Items that the continuous comparison knows to differ; cleared when they are equal again.")
	verifyForeignDesc = tableGauge("verify_foreign_cells",
		"Cells of the target, as the continuous comparison knows, that belong to no item.")
	verifyUnprovenDesc = tableGauge("verify_unproven",
		"Items and cells of which the continuous comparison cannot tell whether they are equal, and items that the mapping "+
			"refuses.")
	verifyCyclesDesc = tableGauge("verify_cycles", "Cycles of the continuous comparison that are finished.")
	verifyShareDesc  = tableGauge("verify_share",
		"Share of this pass of the continuous comparison, of the direction that has seen less of it, from 0 to 1.")
	verifyUncheckedDesc = tableGauge("verify_unchecked_seconds",
		"Time since which every item and row was compared at least once; not there before the first cycle is finished.")
	aheadDesc   = tableGauge("clock_ahead_seconds", "How far versions run ahead of event time.")
	foreignDesc = tableGauge("log_foreign_messages", "Messages in the log that folded as nothing.")
	hottestDesc = tableGauge("hottest_row_writes_per_second",
		"Writes of the target row that was written most, over the last full ten seconds.")
	largestDesc = tableGauge("largest_row_growth_bytes",
		"Growth of the shared target row that has grown most since this process owns the table; a lower estimate.")

	failingDesc = prometheus.NewDesc("tailrace_service_failing_seconds",
		"Time since an operation of the service first failed that has not succeeded since; 0 while none fails.",
		[]string{"service"}, nil)
)

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		readyDesc, ownerDesc, haltedDesc, sourceLagDesc, appliedLagDesc, retentionDesc, proofDesc, viewDesc, waitingDesc,
		pendingChangesDesc,
		lettersDesc, gapsDesc, differingDesc, copyingDesc, copyStillDesc, pendingDesc, recoveringDesc,
		verifyDifferentDesc, verifyForeignDesc, verifyUnprovenDesc, verifyCyclesDesc, verifyShareDesc, verifyUncheckedDesc,
		aheadDesc, foreignDesc,
		hottestDesc, largestDesc, failingDesc,
	} {
		ch <- d
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	for _, service := range []string{status.DynamoDB, status.Bigtable, status.NATS} {
		ch <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, c.failing(service, now).Seconds(), service)
	}
	failing, _ := c.p.failures(now)
	for _, t := range c.p.all() {
		c.collectTable(ch, t, now, len(failing) == 0)
	}
}

// failing returns how long a service has failed.
func (c collector) failing(service string, now time.Time) time.Duration {
	for _, f := range c.p.o.Services.Failures(now) {
		if f.Service == service {
			return now.Sub(f.Since)
		}
	}
	return 0
}

// collectTable sends the gauges of a table. A process that stands by leaves out what the owner reports.
func (c collector) collectTable(ch chan<- prometheus.Metric, t *table, now time.Time, served bool) {
	st := t.view.status(now)
	send := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, t.Source)
	}
	send(readyDesc, one(served && len(st.Reasons) == 0))
	// An owner that cannot reach the log for longer than a claim lives may have lost it. A process that has halted the
	// table releases the log until the next try, and carries the table all the same.
	owner := t.view.claimed.Load() || t.view.halted.Load() != nil
	send(ownerDesc, one(owner && c.failing(status.NATS, now) < 3*c.p.o.Periods.ClaimTTL))
	if st.State == status.StandBy {
		return
	}
	send(haltedDesc, one(st.State == "halted"))
	sendKnown := func(d *prometheus.Desc, v float64) {
		if v >= 0 { // status says -1 for unknown; a metric leaves out what is not known
			send(d, v)
		}
	}
	sendKnown(sourceLagDesc, st.SourceLag)
	sendKnown(appliedLagDesc, st.AppliedLag)
	send(retentionDesc, c.retention(&st, now.Sub(t.view.processStart)))
	send(hottestDesc, t.stats.Rows.Hottest(now))
	send(largestDesc, float64(t.stats.Rows.LargestGrowth()))
	v := t.view.seen.Load()
	if v == nil {
		send(proofDesc, now.Sub(t.view.processStart).Seconds())
		send(viewDesc, now.Sub(t.view.processStart).Seconds())
		return
	}
	send(proofDesc, now.Sub(v.ReadMoved()).Seconds())
	send(viewDesc, now.Sub(v.LookedAt()).Seconds())
	send(waitingDesc, float64(v.Waiting()))
	if st.Pending != nil {
		send(pendingChangesDesc, float64(*st.Pending))
	}
	send(lettersDesc, float64(st.DeadLetters))
	send(gapsDesc, float64(st.Gaps))
	send(differingDesc, float64(st.Differing))
	send(copyingDesc, one(st.Copy != nil))
	if st.Copy != nil && st.Copy.Paused == "" {
		send(copyStillDesc, now.Sub(v.CopyMoved()).Seconds())
	} else {
		send(copyStillDesc, 0)
	}
	send(pendingDesc, one(v.Resync() != nil))
	send(recoveringDesc, one(v.Resync() != nil && v.Resync().Recover))
	send(aheadDesc, st.ClockAhead)
	send(foreignDesc, float64(st.Foreign))
	c.collectVerify(send, t, st.Verify)
}

// collectVerify sends the gauges of the continuous comparison, where there is one.
func (collector) collectVerify(send func(*prometheus.Desc, float64), t *table, s *continuous.Status) {
	if s == nil {
		return
	}
	send(verifyDifferentDesc, float64(s.Different))
	send(verifyForeignDesc, float64(s.Foreign))
	send(verifyUnprovenDesc, float64(s.Unproven+s.Refused))
	send(verifyCyclesDesc, float64(s.Cycles))
	send(verifyShareDesc, min(s.Items.Share, s.Rows.Share))
	if s.CheckedSince != nil {
		send(verifyUncheckedDesc, max(0, t.now().Time().Sub(*s.CheckedSince).Seconds()))
	}
}

// retention returns the seconds until the oldest unread record may be lost, as the log shows it or, when they know more
// about idle shards, as the readers do.
func (c collector) retention(st *TableStatus, running time.Duration) float64 {
	left := st.Retention
	if left < 0 { // nothing is known since the start of the process
		left = max(0, (source.Retention - running).Seconds())
	}
	if alive, ok := c.p.source.Retention(st.Source); ok {
		left = min(left, alive.Seconds())
	}
	return left
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
