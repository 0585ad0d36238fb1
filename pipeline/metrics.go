package pipeline

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/pipeline/gauges"
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

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range gauges.All() {
		ch <- d
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	for _, service := range []string{status.DynamoDB, status.Bigtable, status.NATS} {
		ch <- prometheus.MustNewConstMetric(gauges.Failing, prometheus.GaugeValue, c.failing(service, now).Seconds(), service)
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
	send(gauges.Ready, one(served && len(st.Reasons) == 0))
	// An owner that cannot reach the log for longer than a claim lives may have lost it. A process that has halted the
	// table releases the log until the next try, and carries the table all the same.
	owner := t.view.claimed.Load() || t.view.halted.Load() != nil
	send(gauges.Owner, one(owner && c.failing(status.NATS, now) < 3*c.p.o.Periods.ClaimTTL))
	if st.State == status.StandBy {
		return
	}
	send(gauges.Halted, one(st.State == "halted"))
	send(gauges.Premises, float64(len(t.view.broken())))
	sendKnown := func(d *prometheus.Desc, v float64) {
		if v >= 0 { // status says -1 for unknown; a metric leaves out what is not known
			send(d, v)
		}
	}
	sendKnown(gauges.SourceLag, st.SourceLag)
	sendKnown(gauges.AppliedLag, st.AppliedLag)
	send(gauges.Retention, c.retention(&st, now.Sub(*t.view.unseen.Load())))
	send(gauges.Hottest, t.stats.Rows.Hottest(now))
	send(gauges.Largest, float64(t.stats.Rows.LargestGrowth()))
	v := t.view.seen.Load()
	if v == nil {
		send(gauges.Proof, now.Sub(*t.view.unseen.Load()).Seconds())
		send(gauges.View, now.Sub(*t.view.unseen.Load()).Seconds())
		return
	}
	send(gauges.Proof, now.Sub(v.ReadMoved()).Seconds())
	send(gauges.View, now.Sub(v.LookedAt()).Seconds())
	send(gauges.Waiting, float64(v.Waiting()))
	if st.Pending != nil {
		send(gauges.PendingChanges, float64(*st.Pending))
	}
	send(gauges.Letters, float64(st.DeadLetters))
	send(gauges.Gaps, float64(st.Gaps))
	send(gauges.Differing, float64(st.Differing))
	if b := st.BehindFence; b != nil {
		send(gauges.Behind, float64(b.Changes))
	} else {
		send(gauges.Behind, 0)
	}
	send(gauges.Copying, one(st.Copy != nil))
	if st.Copy != nil && st.Copy.Paused == "" {
		send(gauges.CopyStill, now.Sub(v.CopyMoved()).Seconds())
	} else {
		send(gauges.CopyStill, 0)
	}
	send(gauges.Pending, one(v.Resync() != nil))
	send(gauges.Recovering, one(v.Resync() != nil && v.Resync().Recover))
	send(gauges.Ahead, st.ClockAhead)
	send(gauges.Foreign, float64(st.Foreign))
	c.collectVerify(send, t, st.Verify)
}

// collectVerify sends the gauges of the continuous comparison, where there is one.
func (collector) collectVerify(send func(*prometheus.Desc, float64), t *table, s *continuous.Status) {
	if s == nil {
		return
	}
	send(gauges.VerifyDifferent, float64(s.Different))
	send(gauges.VerifyForeign, float64(s.Foreign))
	send(gauges.VerifyUnproven, float64(s.Unproven+s.Refused))
	send(gauges.VerifyCycles, float64(s.Cycles))
	send(gauges.VerifyShare, min(s.Items.Share, s.Rows.Share))
	if s.CheckedSince != nil {
		send(gauges.VerifyUnchecked, max(0, t.now().Time().Sub(*s.CheckedSince).Seconds()))
	}
}

// retention returns the seconds until the oldest unread record may be lost, as the log shows it or, when they know more
// about idle shards, as the readers do.
func (c collector) retention(st *TableStatus, unseen time.Duration) float64 {
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
