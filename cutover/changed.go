package cutover

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/verify"
)

// atOnce is how many changed items are read from the file of their keys at once.
const atOnce = 1000

// verify compares both sides, with strong reads, and refuses what is not equal. It compares all
// items, or, where the kept full comparison shows the rest, those that have changed since that one.
func (c *Cutover) verify(ctx context.Context) (*verified, error) {
	v, why, err := c.verifyChanged(ctx)
	if err == nil && v == nil {
		c.Say("Verifying: all items are read and compared with Bigtable, because %s.", why)
		v, err = c.verifyAll(ctx)
	}
	if err != nil {
		return nil, audit.NoRoom(c.cfg.Scratch, err)
	}
	c.Say("%s.", v.Sum())
	return v, nil
}

// verifyChanged compares the items that have changed since the kept full comparison. Where that one
// does not show the rest, it returns nil and why.
func (c *Cutover) verifyChanged(ctx context.Context) (v *verified, why string, err error) {
	if c.Full {
		return nil, "--full asks for it", nil
	}
	dir := audit.SavedDir(cmp.Or(c.folder, c.cfg.Scratch), c.cfg.Pipeline, c.pair.Target)
	lock, err := audit.LockScratch(filepath.Join(dir, "all"))
	if err != nil {
		return nil, "another verify is at work", nil // the full comparison has a directory of its own
	}
	defer lock.Close() // which unlocks it
	began := utc(c.pair.Now())
	changed, why, err := c.changedSince(ctx, dir)
	if why != "" || err != nil {
		return nil, why, err
	}
	full := changed.Result
	c.Say("Verifying: the items that have changed since the full comparison of %s are compared.", stamp(full.Began))
	t, err := c.settle(ctx, func(check *verify.Checker) error {
		err := check.Each(ctx, func(f func([]verify.Candidate) error) error { return changed.Items(atOnce, f) })
		if err != nil {
			return err
		}
		return check.Cells(ctx, cmp.Or(c.fenced, c.pair.Now()), changed.EachCell)
	})
	if err != nil {
		return nil, "", err
	}
	v = &verified{Verify: certificate.Verify{How: certificate.HowChanged, Began: full.Began, Ended: full.Ended,
		Changed: &certificate.Changed{Began: began, Ended: utc(c.pair.Now()), Items: t.items}}}
	for i := range full.Tables {
		r := &full.Tables[i].Result
		v.Items, v.Rows, v.Cells = v.Items+r.Items, v.Rows+r.Rows, v.Cells+r.Cells
		v.Equal, v.EqualByLog, v.Kept = v.Equal+r.Equal+r.ByLog, v.EqualByLog+r.ByLog, v.Kept+r.Kept
	}
	v.Kept += t.kept
	if reasons := c.unequal(v, t); len(reasons) > 0 {
		return nil, "", &Refused{Reasons: reasons}
	}
	return v, "", nil
}

// changedSince returns the items that have changed since the kept comparison, or why that one does
// not show that the others are equal.
func (c *Cutover) changedSince(ctx context.Context, dir string) (changed *audit.Changed, why string, err error) {
	changed, err = audit.SinceLast(ctx, c.pair, c.cfg.Pipeline, dir)
	if useless := (*audit.Stale)(nil); errors.As(err, &useless) {
		return nil, useless.Why, nil
	}
	if err == nil {
		why, err = c.unusable(ctx, changed)
	}
	return changed, why, err
}

// unusable returns why the kept comparison does not show that the items that have not changed since
// are equal.
func (c *Cutover) unusable(ctx context.Context, changed *audit.Changed) (why string, err error) {
	r := changed.Result
	switch {
	case !r.Strong || !r.Followed:
		return "the last full one was made without --for-cutover", nil
	case r.OpenItems > 0:
		items := english.Plural(int(r.OpenItems), "item that was", "items that were")
		return "the last full one found " + items + " not equal", nil
	case !r.CellsListed():
		return "the last full one found more cells without a known owner than it lists", nil
	case r.OpenCells > 0 && !c.AcceptForeign && len(c.Accept) == 0:
		return "the last full one found " + english.Plural(int(r.OpenCells), "cell", "") + " without a known owner", nil
	}
	return changed.Requested(ctx)
}
