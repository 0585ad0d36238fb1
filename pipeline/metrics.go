package pipeline

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// registerMetrics registers the gauges of the tables; reg may be nil. Labels are the table's source
// name and nothing that grows. What is counted is counted where it happens; every gauge is computed
// when it is scraped, by collector.
func registerMetrics(reg prometheus.Registerer, p *Pipeline) {
	if reg != nil {
		reg.MustRegister(collector{p})
	}
}

// collector computes the gauges at scrape time, from the same status that /readyz and /status show,
// so that they never disagree, and so that a lag grows while no news arrives.
type collector struct{ p *Pipeline }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range allGauges() {
		ch <- d
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	for _, service := range []string{status.DynamoDB, status.Bigtable, status.NATS} {
		ch <- prometheus.MustNewConstMetric(failing, prometheus.GaugeValue, c.failing(service, now).Seconds(), service)
	}
	for _, r := range c.p.rehearsals.All() {
		ch <- prometheus.MustNewConstMetric(rehearsalRefusals, prometheus.GaugeValue, float64(len(r.Refusals)), r.Target)
		for step, seconds := range r.Steps {
			ch <- prometheus.MustNewConstMetric(rehearsalSeconds, prometheus.GaugeValue, seconds, r.Target, step)
		}
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

// collectTable sends the gauges of a table. A process that stands by leaves out what the owner
// reports.
func (c collector) collectTable(ch chan<- prometheus.Metric, t *table, now time.Time, served bool) {
	st, known := t.view.status(now), t.view.latest()
	send := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, t.Source)
	}
	send(ready, one(served && len(st.Reasons) == 0))
	// An owner that cannot reach the log for as long as a silent owner counts as alive may have
	// lost it. A process that has halted the table releases the log until the next try, and carries
	// the table all the same.
	owner := known.phase >= phaseClaimed || known.halt != nil
	send(Owner, one(owner && c.failing(status.NATS, now) <= protocol.SilentAfter(c.p.o.Periods.ClaimTTL)))
	if st.State == status.StandBy {
		return
	}
	send(halted, one(st.State == "halted"))
	collectSinks(ch, &st)
	send(premises, float64(len(known.broken())))
	sendKnown := func(d *prometheus.Desc, v float64) {
		if v >= 0 { // status says -1 for unknown; a metric leaves out what is not known
			send(d, v)
		}
	}
	sendKnown(sourceLag, st.SourceLag)
	sendKnown(appliedLag, st.AppliedLag)
	send(retention, c.retention(&st, now.Sub(known.unseen)))
	send(hottest, t.stats.Rows.Hottest(now))
	send(largest, float64(t.stats.Rows.LargestGrowth()))
	v := known.seen
	if v == nil {
		send(proof, now.Sub(known.unseen).Seconds())
		send(view, now.Sub(known.unseen).Seconds())
		return
	}
	send(proof, now.Sub(v.ReadMoved()).Seconds())
	send(view, now.Sub(v.LookedAt()).Seconds())
	send(waiting, float64(v.Waiting()))
	if st.Pending != nil {
		send(pendingChanges, float64(*st.Pending))
	}
	send(letters, float64(st.DeadLetters))
	send(gaps, float64(st.Gaps))
	send(differing, float64(st.Differing))
	if b := st.BehindFence; b != nil {
		send(behind, float64(b.Changes))
	} else {
		send(behind, 0)
	}
	send(copying, one(st.Copy != nil))
	if st.Copy != nil && st.Copy.Paused == "" {
		send(copyStill, now.Sub(v.CopyMoved()).Seconds())
	} else {
		send(copyStill, 0)
	}
	send(pending, one(v.Resync() != nil))
	send(recovering, one(v.Resync() != nil && v.Resync().Recover))
	send(ahead, st.ClockAhead)
	collectLimit(ch, &st)
	send(foreign, float64(st.Foreign))
	c.collectVerify(send, t, st.Verify)
}

// collectSinks sends which sinks of the archive are halted beside a table that goes on.
func collectSinks(ch chan<- prometheus.Metric, st *TableStatus) {
	if st.Archive == nil {
		return
	}
	for _, sink := range []string{checkpoint.SinkArchive, archiving.SinkObjects, archiving.SinkSubject} {
		_, halts := st.Halts[sink]
		alone := one(halts && st.State != "halted")
		ch <- prometheus.MustNewConstMetric(sinkHalted, prometheus.GaugeValue, alone, st.Source, sink)
	}
}

// collectLimit sends what limits a table, while that is known.
func collectLimit(ch chan<- prometheus.Metric, st *TableStatus) {
	if st.LimitedBy == "" {
		return
	}
	for _, by := range limit.All() {
		ch <- prometheus.MustNewConstMetric(limitedBy, prometheus.GaugeValue, one(by == st.LimitedBy), st.Source, string(by))
	}
}

// collectVerify sends the gauges of the continuous comparison, where there is one.
func (collector) collectVerify(send func(*prometheus.Desc, float64), t *table, s *continuous.Status) {
	if s == nil {
		return
	}
	send(verifyDifferent, float64(s.Different))
	send(verifyForeign, float64(s.Foreign))
	send(verifyUnproven, float64(s.Unproven+s.Refused))
	send(verifyCycles, float64(s.Cycles))
	send(verifyShare, min(s.Items.Share, s.Rows.Share))
	if s.CheckedSince != nil {
		send(verifyUnchecked, max(0, t.now().Time().Sub(*s.CheckedSince).Seconds()))
	}
}

// retention returns the seconds until the oldest unread record may be lost, as the log shows it or,
// when they know more about idle shards, as the readers do.
func (c collector) retention(st *TableStatus, unseen time.Duration) float64 {
	if st.Ended {
		return source.Retention.Seconds() // nothing is unread, nor ever will be
	}
	left := st.Retention
	if left < 0 { // nothing is known for so long
		left = max(0, (source.Retention - unseen).Seconds())
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
