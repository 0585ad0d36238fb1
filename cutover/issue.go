package cutover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
)

// issue writes down what was found. v is the comparison, and through the time up to which every
// shard was read after it.
func (c *Cutover) issue(
	ctx context.Context, drained change.Millis, v *verified, through change.Millis,
) (*certificate.Certificate, error) {
	if err := c.awaitHeartbeats(ctx, through); err != nil {
		return nil, err
	}
	// A record that came out of its shard later than empty reads had shown lies before the
	// heartbeats.
	logs, err := c.lookBehind(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.checkRows(ctx); err != nil {
		return nil, err
	}
	cert := &certificate.Certificate{
		Format: certificate.Format, ID: c.id, Pipeline: c.cfg.Pipeline, Target: c.pair.Sink().TargetName(c.pair.Target),
		Verdict: "equal", Program: c.Program,
		Times:   c.times(drained, c.pair.Now()),
		Verify:  v.Verify,
		Waivers: append([]certificate.Waiver{}, v.waivers...),
		Says:    statements(v, idleSentence(logs, through)),
	}
	if c.quiet == 0 {
		cert.Says = append(cert.Says, "How long nothing was written before the fence is not known: the process that raised "+
			"the fence is not the one that issued the certificate.")
	}
	if len(c.ages()) > 0 {
		cert.Waivers = append(cert.Waivers, certificate.Waiver{Name: "aged"})
	}
	for i := range cert.Waivers {
		cert.Waivers[i].By = control.Whoami()
	}
	cert.Says = append(cert.Says, accepted(cert.Waivers)...)
	if names := c.pair.Retired(); len(names) > 0 {
		cert.Says = append(cert.Says, fmt.Sprintf("Cells that no item of the tables can have were left out: the replication "+
			"of %s into the target has ended.", strings.Join(names, ", ")))
	}
	for i, l := range logs {
		cert.Tables = append(cert.Tables, c.table(i, l, idleness(l, through)))
	}
	return cert, nil
}

// times returns when the steps were made. The quiet time is left out where the fence stood when
// this process began: it is stored nowhere how long the other one waited, and the options of this
// one say nothing about it.
func (c *Cutover) times(drained, certified change.Millis) certificate.Times {
	t := certificate.Times{Fenced: utc(c.fenced), Drained: utc(drained), Certified: utc(certified)}
	if c.quiet > 0 {
		t.QuietSince, t.Quiet = utc(c.quiet), c.Quiet.String()
	}
	return t
}

// statements lists what the certificate does and does not prove.
func statements(v *verified, idle string) []string {
	all := []string{"Every item that the tables held at the fence was read strongly and is in Bigtable as its mapping " +
		"says."}
	if v.Changed != nil {
		n := int(v.Changed.Items)
		since := fmt.Sprintf("The %s read strongly behind the fence and %s.", english.Plural(n,
			"item that has changed since was", "items that have changed since were"), english.PluralWord(n, "is", "are"))
		if n == 0 {
			since = "No item has changed since."
		}
		all = []string{
			fmt.Sprintf("Every item that the tables held was read strongly by a full comparison that began at %s, before the "+
				"fence, and was in Bigtable as its mapping says. %s", stamp(v.Began), since),
			"That nothing else than the replicator has written to Bigtable since the full comparison is assumed.",
		}
	}
	return append(all, idle, "It says nothing about what was written to Bigtable or DynamoDB after it was issued.")
}

// accepted lists what the waivers take away from the statements of a certificate.
func accepted(waivers []certificate.Waiver) (says []string) {
	for _, w := range waivers {
		switch column, ok := strings.CutPrefix(w.Name, waivesColumn); {
		case ok:
			says = append(says, fmt.Sprintf("Accepted by name: of %s of %s it is not known to which item each belongs, so "+
				"each may be one that its item does not have any more.", english.Plural(int(w.Count), "cell", ""), column))
		case w.Name == "foreign":
			says = append(says, "Accepted by name: "+
				english.Plural(int(w.Count), "cell in Bigtable belongs", "cells in Bigtable belong")+" to no item.")
		case w.Name == "aged":
			says = append(says, "Accepted by name: of families with max_age, Bigtable may lack cells that their items have.")
		}
	}
	return says
}

// table returns the entry of one table in the certificate, with the evidence that it was idle.
func (c *Cutover) table(i int, l *control.Log, idle string) certificate.Table {
	s, info := l.State, &c.pair.Tables[i].Info
	id := c.pair.Tables[i].Identity(c.cfg.Pipeline, c.pair.Sink())
	t := certificate.Table{
		Source: l.Table, TableID: info.ID, Stream: info.StreamARN, MappingHash: id.MappingHash,
		LogCreated: l.Log.Created().UTC(), Life: s.Life, LogFormat: s.Format,
		Fence:   certificate.Fence{Entry: s.Fence.Seq, Last: s.Fence.Last, At: utc(s.Fence.At)},
		Applied: s.Marks[checkpoint.SinkBigtable].Seq, Changes: s.Changes, Idle: idle,
		Shards: []certificate.Shard{}, Gaps: []certificate.Gap{},
		Behind: certificate.Behind{Through: c.behind[i].mark.Seq, Expired: int64(len(c.behind[i].expired))},
	}
	for _, sh := range s.Shards {
		t.Shards = append(t.Shards, certificate.Shard{
			ID: sh.ID, Position: string(sh.Pos.After), Through: utc(sh.Watermark), Done: sh.Phase.Finished(),
			Idle: idle,
		})
	}
	slices.SortFunc(t.Shards, func(a, b certificate.Shard) int { return cmp.Compare(a.ID, b.ID) })
	for n := range s.Gaps {
		g := &s.Gaps[n]
		gap := certificate.Gap{ID: g.ID(), Since: utc(g.Since), Until: utc(g.Until), Reason: g.Reason,
			Healed: map[string]string{}, Waived: map[string]string{}}
		for sink, h := range g.Healed {
			gap.Healed[sink] = h.Note
		}
		for sink, w := range g.Waived {
			gap.Waived[sink] = w.By
		}
		t.Gaps = append(t.Gaps, gap)
	}
	return t
}
