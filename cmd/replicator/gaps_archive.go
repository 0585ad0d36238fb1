package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// healing is what gaps heal was asked for.
type healing struct {
	table, sink string
	exports     []string
	wait        bool
}

// ofArchive reports whether the archive is to be healed, and not the rows.
func (h *healing) ofArchive() (bool, error) {
	switch {
	case h.sink == checkpoint.SinkArchive && len(h.exports) == 0:
		return false, failure.Usagef("--from-export names incremental exports of the table whose windows span the gaps",
			"the archive is healed from exports")
	case h.sink == "bigtable" && len(h.exports) > 0:
		return false, failure.Usagef("leave --from-export out, or name --sink archive",
			"rows are healed from the table itself")
	case h.sink != "" && h.sink != "bigtable" && h.sink != checkpoint.SinkArchive:
		return false, failure.Usagef("bigtable or archive", "there is no sink %q", h.sink)
	}
	return len(h.exports) > 0, nil
}

// healArchive has archival events made of what gaps of one table lost.
func (a *app) healArchive(ctx context.Context, h *healing, ids []string) error {
	logs, clients, err := a.TableLogs(ctx, h.table)
	if err != nil {
		return err
	}
	defer clients.Close()
	l, gaps, err := archiveGaps(logs, ids)
	if err != nil {
		return err
	}
	if len(gaps) == 0 {
		if a.JSON {
			return a.PrintJSON(map[string]any{"schema": schema, "healing": []string{}})
		}
		a.Print("No gaps to heal: the archive lacks nothing.")
		return nil
	}
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	order := &request.HealOrder{Gaps: gaps, Exports: h.exports}
	id, out, err := a.Requester(cfg, clients, l.Table).Heal(ctx, order, h.wait)
	switch {
	case err != nil:
		return err
	case a.JSON && out == nil:
		return a.PrintJSON(map[string]any{"schema": schema, "table": l.Table, "healing": gaps, "request": id})
	case a.JSON:
		err := a.PrintJSON(map[string]any{"schema": schema, "table": l.Table, "gaps": gaps, "healed": out.Healed})
		if err == nil && len(out.Healed.Unconfirmed) > 0 {
			err = failure.Reported(failure.Different)
		}
		return err
	case out == nil:
		a.Print("The archive of %s is being healed for %s: `replicator gaps list` shows when that is done.", l.Table,
			render.Count(len(gaps), "gap"))
		return nil
	}
	n := out.Healed
	if len(n.Unconfirmed) == 0 {
		a.Print("%s: the archive is healed for %s.", l.Table, render.Count(len(gaps), "gap"))
	} else {
		a.Print("%s: the archive stays incomplete for %s.", l.Table, render.Count(len(gaps), "gap"))
	}
	a.Print("  %s archived as class healed, %d known from the stream.", render.Count(int(n.Events), "event"), n.Known)
	a.Print("  Not archived: %d without an image, %d deleted before their time, %d that the mapping does not archive.",
		n.NoImage, n.Alive, n.Skipped)
	for _, u := range n.Unconfirmed {
		a.Print("  DynamoDB cannot be asked whether export %s is whole: %s", u.Export, u.Reason)
	}
	if len(n.Unconfirmed) > 0 {
		a.Print("Next: exports of the last 90 days that these credentials may describe (dynamodb:DescribeExport), or " +
			"`replicator gaps clear`.")
		return failure.Reported(failure.Different)
	}
	return nil
}

// archiveGaps returns the gaps of one table of which the archive differs; of the given ones if there are any.
func archiveGaps(logs []*control.Log, ids []string) (of *control.Log, gaps []string, err error) {
	for _, id := range ids {
		if _, g := findGap(logs, id); g == nil {
			return nil, nil, noGap(id)
		}
	}
	for _, l := range logs {
		for i := range l.State.Gaps {
			g := &l.State.Gaps[i]
			if len(ids) > 0 && !slices.Contains(ids, g.ID()) {
				continue
			}
			wanted, err := lacksArchive(l, g, len(ids) > 0)
			if err != nil {
				return nil, nil, err
			}
			if !wanted {
				continue
			}
			if of != nil && of != l {
				return nil, nil, failure.Usagef("name it with --table", "%s and %s have gaps, and an export is of one table",
					of.Table, l.Table)
			}
			of, gaps = l, append(gaps, g.ID())
		}
	}
	return of, gaps, nil
}

// lacksArchive reports whether the archive lacks what a gap lost. A gap that is named must.
func lacksArchive(l *control.Log, g *checkpoint.Gap, named bool) (bool, error) {
	switch differing := slices.Contains(l.State.DifferingSinks(g), checkpoint.SinkArchive); {
	case differing && !g.Accepted:
		return false, failure.With(failure.Unready,
			"first `replicator repair --gaps "+g.ID()+"`, or `replicator resume --table "+l.Table+"`",
			fmt.Errorf("gap %s of %s is open: nothing after it is read", g.ID(), l.Table))
	case differing || !named:
		return differing, nil
	}
	if h, ok := g.Healed[checkpoint.SinkArchive]; ok {
		return false, failure.With(failure.None, "",
			errors.New(strings.TrimSuffix("the archive is healed for gap "+g.ID()+" already: "+h.Note, ": ")))
	}
	return false, failure.With(failure.None, "`replicator gaps list` shows what is waived",
		fmt.Errorf("the archive lacks nothing because of gap %s", g.ID()))
}
