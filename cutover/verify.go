package cutover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/verify"
)

// verified is a comparison of both sides.
type verified struct {
	certificate.Verify
	waivers []certificate.Waiver
}

// tries is how often both sides are settled: TTL may delete an item between a reading and a look
// behind the fence.
const tries = 3

// verifyAll compares all items with all rows.
func (c *Cutover) verifyAll(ctx context.Context) (*verified, error) {
	dir := filepath.Join(cmp.Or(c.folder, c.cfg.Scratch), "cutover", c.cfg.Pipeline, c.pair.Target)
	lock, err := audit.LockScratch(dir) // another cutover would take its candidates for these
	if err != nil {
		return nil, err
	}
	defer lock.Close() // which unlocks it
	s := c.settler()
	v := &verified{Verify: certificate.Verify{How: certificate.HowFull, Began: utc(c.pair.Now())}}
	found, err := verify.Full(ctx, verify.FullOptions{
		Dir: dir, Identity: c.identity(), Now: c.pair.Now, Lead: c.pair.Lead(),
	}, s.Tables, s.Target)
	if err != nil {
		return nil, audit.ClearScratch(dir, err)
	}
	t, err := c.settle(ctx, func(check *verify.Checker) error { return check.Findings(ctx, found) })
	if err != nil {
		_ = found.Close() // of files that the next comparison makes again
		return nil, audit.ClearScratch(dir, err)
	}
	v.Ended = utc(c.pair.Now())
	t.addFull(&v.Verify, &found.Counts)
	if reasons := c.unequal(v, t); len(reasons) > 0 {
		return nil, errors.Join(&Refused{Reasons: reasons}, found.Close())
	}
	// Rule 15: the comparison is the outcome, and stands whatever becomes of its files. What stays
	// is of these fences, behind which no item changes; a comparison behind others drops it.
	_ = found.Remove()
	return v, nil
}

// verifyExpired compares the items that TTL has deleted behind the fence as they were: where
// Bigtable lacks one that was deleted before the comparison has read it, neither side has shown it.
// It needs no proof of its own: behind the fence no row changes.
func (c *Cutover) verifyExpired(ctx context.Context, v *verified) error {
	var items []verify.Candidate
	for i := range c.behind {
		for _, key := range slices.Sorted(maps.Keys(c.behind[i].expired)) {
			items = append(items, verify.Candidate{Table: i, Key: key})
		}
	}
	t := &tally{c: c, accepted: map[string]int64{}}
	check := &verify.Checker{Settler: c.settler(), Verdict: t.item, Cell: t.cell}
	check.Prove = func(context.Context, change.Millis) error { return nil }
	c.pair.KeepLead(&check.Settler)
	if err := check.Items(ctx, items); err != nil {
		return err
	}
	if reasons := c.unequal(&verified{}, t); len(reasons) > 0 {
		return &Refused{Reasons: reasons}
	}
	v.Expired = c.expired()
	return nil
}

// identity names what finished parts belong to: the fences, behind which no item may change.
func (c *Cutover) identity() string {
	name := "cutover " + c.id
	for i := range c.behind {
		name += fmt.Sprint(" ", c.behind[i].fence)
	}
	return name
}

// settler reads items as they are, and those that TTL has deleted behind the fence as they were.
func (c *Cutover) settler() verify.Settler {
	s := c.pair.Settler()
	s.ReadItems = c.readItems
	return s
}

// settle settles what may differ, again when TTL has deleted items meanwhile.
func (c *Cutover) settle(ctx context.Context, run func(*verify.Checker) error) (*tally, error) {
	for n := 1; ; n++ {
		t := &tally{c: c, accepted: map[string]int64{}}
		check := &verify.Checker{Settler: c.settler(), Verdict: t.item, Cell: t.cell}
		c.pair.KeepLead(&check.Settler)
		if err := run(check); err != nil {
			return nil, err
		}
		if c.folder != "" { // there is no fence to look behind: what differs was settled with proofs
			return t, nil
		}
		known := c.expired()
		if _, err := c.lookBehind(ctx); err != nil {
			return nil, err
		}
		if n == tries || c.expired() == known {
			return t, nil
		}
	}
}

// tally counts what was settled.
type tally struct {
	c *Cutover

	items, byLog, different, refused, unproven int64
	notEqual                                   int64            // of items: those that the source has
	kept, foreign, sealed                      int64            // cells; sealed ones are in unproven, too
	waived                                     int64            // of unproven: cells whose columns are accepted
	accepted                                   map[string]int64 // them, by waiver: each rule that may have written one
}

func (t *tally) item(v *verify.Verdict) error {
	t.items++
	t.kept += int64(v.Kept)
	switch v.Status {
	case verify.Equal, verify.Kept:
		return nil
	case verify.EqualByLog:
		t.byLog++
		return nil
	case verify.Different:
		t.different++
	case verify.Refused:
		t.refused++
	case verify.Unproven:
		t.unproven++
	}
	if !v.Absent {
		t.notEqual++
	}
	return nil
}

func (t *tally) cell(o *verify.Open) error {
	switch o.Kind {
	case verify.Foreign:
		t.foreign++
		return nil
	case verify.Sealed:
		t.sealed++
	}
	t.unproven++
	names := t.c.accepts(o)
	for _, name := range names {
		t.accepted[name]++
	}
	if len(names) > 0 {
		t.waived++
	}
	return nil
}

// addFull adds what a full comparison counts, and does not settle: of cells without a known owner
// it hands on the first million.
func (t *tally) addFull(v *certificate.Verify, n *verify.Counts) {
	v.Items, v.Rows, v.Cells = n.Items, n.Rows, n.Cells
	v.Equal, v.Kept = n.Items-t.notEqual, n.Kept+t.kept
	t.foreign, t.unproven = max(t.foreign, n.Foreign), t.unproven+max(0, n.Unproven-t.sealed)
}

// unequal lists what is neither equal nor accepted by name, and notes what is counted and accepted.
func (c *Cutover) unequal(v *verified, t *tally) (reasons []string) {
	v.Verdict, v.EqualByLog, v.Expired = "equal", v.EqualByLog+t.byLog, c.expired()
	v.Foreign, v.Unproven, v.Refused, v.Different = t.foreign, t.unproven, t.refused, t.different
	add := func(n int64, one, many, what string) {
		if n > 0 {
			reasons = append(reasons, english.Plural(int(n), one, many)+what)
		}
	}
	waive := func(name string, n int64) { v.waivers = append(v.waivers, certificate.Waiver{Name: name, Count: n}) }
	way := ": `replicator cutover --undo`, then `replicator repair`"
	if c.folder != "" {
		way = ": `replicator repair`"
	}
	add(t.different, "item differs", "items differ", way)
	add(t.refused, "item is", "items are", " refused by the mapping")
	if t.foreign > 0 && c.AcceptForeign {
		waive("foreign", t.foreign)
	} else {
		add(t.foreign, "cell is foreign: no guard of its row owns it", "cells are foreign: no guard of their row owns them",
			" (--accept-foreign)")
	}
	for _, name := range slices.Sorted(maps.Keys(t.accepted)) {
		waive(name, t.accepted[name])
	}
	add(t.unproven-t.waived, "item or cell is", "items or cells are", " unproven (for columns without an inverse, which "+
		"`replicator verify --differences` names: --accept columns:RULE/FAMILY:COLUMN, once for each rule that "+
		"may have written them)")
	return reasons
}
