package resync

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/source"
)

// Progress is how far a copy has come, for status.
type Progress struct {
	ID             string  `json:"id"`
	From           string  `json:"from"` // scan or export
	Percent        float64 `json:"percent"`
	Items          int64   `json:"items"`
	EstimatedItems int64   `json:"items_estimate"` // 0: not known
	Bytes          int64   `json:"bytes"`
	EstimatedBytes int64   `json:"bytes_estimate"`
	Rate           float64 `json:"rate"`        // items per second
	ETA            float64 `json:"eta_s"`       // -1: not known
	ReadUnits      float64 `json:"read_units"`  // per second, lately; -1: only the owner knows, and it was not asked
	ReadBudget     float64 `json:"read_budget"` // per second; -1 likewise
	Paused         string  `json:"paused,omitempty"`
	Waits          string  `json:"waits,omitempty"` // why nothing is read at the moment
	Letters        int64   `json:"letters"`         // items that became dead letters
	// Workers are outside the daemon and copy; nil: the owner does.
	Workers *WorkersProgress `json:"workers,omitempty"`
}

// WorkersProgress is what is known of a copy that is delegated to workers.
type WorkersProgress struct {
	Order   string `json:"order"`   // id
	Closing bool   `json:"closing"` // they are to end
	// Command starts workers for the order; it may be given again.
	Command string `json:"command"`

	pipeline, table string
}

// At completes the command with the project and the instance of the target, as "project/instance".
func (w WorkersProgress) At(instance string) *WorkersProgress {
	w.Command = fmt.Sprintf("replicator-bulk copy --pipeline %s --table %s --bigtable %s", w.pipeline, w.table,
		cmp.Or(instance, "PROJECT/INSTANCE"))
	return &w
}

// workersOf returns what the log shows of the workers of a copy; nil for none.
func workersOf(c *checkpoint.CopyState, pipeline, table string) *WorkersProgress {
	if c.Delegated == 0 {
		return nil
	}
	w := WorkersProgress{
		Order: delegation.ID(c.ID, c.Delegated), Closing: c.Closes(), pipeline: pipeline, table: table,
	}
	return w.At("")
}

// ProgressOf returns what a log shows about its copy at a time of the service; nil when no copy is
// running.
func ProgressOf(s *checkpoint.State, now change.Millis) *Progress {
	c := s.CopyRunning()
	if c == nil {
		return nil
	}
	done := c.Total()
	p := &Progress{
		ID: c.ID, From: c.From, Items: done.Items, Bytes: done.Bytes, Letters: done.Letters,
		EstimatedItems: c.Items, EstimatedBytes: c.Bytes, ReadUnits: -1, ReadBudget: -1,
	}
	of := checkpoint.Identity{Pipeline: "PIPELINE", Table: "TABLE"}
	if s.Identity != nil {
		of = *s.Identity
	}
	p.Workers = workersOf(c, of.Pipeline, of.Table)
	switch p.Paused = pauseReason(c); {
	case p.Paused != "":
	case c.From == checkpoint.FromExport && c.Export == "":
		p.Waits = "there is no complete export yet"
	}
	if since := float64(now-c.Began) / 1000; since > 0 {
		p.Rate = float64(done.Items) / since
	}
	ended, empty := 0, 0
	for _, m := range c.Marks {
		switch {
		case m.Done && m.Items == 0:
			empty++
		case m.Done:
			ended++
		}
	}
	p.estimate(ended, c.Parts-empty)
	return p
}

// pauseReason returns why a copy is paused; "" if it is not.
func pauseReason(c *checkpoint.CopyState) string {
	if c.Paused {
		return cmp.Or(c.PausedWhy, "by an operator: go on with `replicator copy resume`")
	}
	return c.PausedWhy
}

// estimate computes percent and the time left. The service counts items every six hours or so,
// hence the estimate may be too low. The share of the parts that have ended counts where it is
// higher; a change between the two never sinks. Parts that were empty count as no part at all: of a
// small table most are.
func (p *Progress) estimate(ended, parts int) {
	byParts := 0.0
	if parts > 0 {
		byParts = 100 * float64(ended) / float64(parts)
	}
	p.Percent = byParts
	if p.EstimatedItems > 0 {
		p.Percent = max(byParts, 100*float64(p.Items)/float64(p.EstimatedItems))
	}
	p.Percent = math.Floor(min(p.Percent, 99)*10) / 10
	p.ETA = -1
	if p.Rate > 0 && p.EstimatedItems > p.Items {
		p.ETA = math.Round(float64(p.EstimatedItems-p.Items) / p.Rate)
	}
	p.Rate = math.Round(p.Rate*10) / 10
}

// Sentence returns the progress in words: 41 % · 12.3 M of about 30 M items · 5,100/s · about 58
// min left.
func (p *Progress) Sentence() string { return strconv.Itoa(int(p.Percent)) + " % · " + p.Details() }

// Details returns the same without the share.
func (p *Progress) Details() string {
	all := max(p.Items, p.EstimatedItems)
	items := short(all) + " items"
	if all == 1 {
		items = "1 item"
	}
	if all > p.Items {
		items = short(p.Items) + " of about " + items
	}
	parts := []string{items}
	switch {
	case p.Paused != "":
		return strings.Join(append(parts, "paused: "+p.Paused), " · ")
	case p.Waits != "":
		return strings.Join(append(parts, "waits: "+p.Waits), " · ")
	}
	parts = append(parts, thousands(int64(math.Round(p.Rate)))+"/s")
	if p.ETA >= 0 {
		parts = append(parts, "about "+left(time.Duration(p.ETA)*time.Second)+" left")
	}
	if w := p.Workers; w != nil && w.Closing {
		parts = append(parts, "the workers end")
	} else if w != nil {
		parts = append(parts, "by workers: `"+w.Command+"`")
	}
	return strings.Join(parts, " · ")
}

// short returns a number with three digits: 12.3 M.
func short(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e5, " k"}} {
		if f := float64(n); f >= unit.size {
			size := min(unit.size, 1e9)
			if unit.name == " k" {
				size = 1e3
			}
			return strconv.FormatFloat(f/size, 'g', 3, 64) + unit.name
		}
	}
	return thousands(n)
}

// thousands returns a number with commas.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// left returns a duration as people say it.
func left(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf("%d h", int(d.Hours()+0.5))
}

// Progress returns how far the copy has come: all durable items, whether or not a mark is stored
// for them, and the rate of this life.
func (c *Copier) Progress() *Progress {
	if next := c.next.Load(); next != nil {
		return next.Progress()
	}
	total := c.parts.total()
	c.mu.Lock()
	p := &Progress{
		ID: c.copy.ID, From: c.copy.From, EstimatedItems: c.copy.Items, EstimatedBytes: c.copy.Bytes,
		Paused: pauseReason(&c.copy), Waits: cmp.Or(c.waits, c.trouble.why),
	}
	p.Workers = workersOf(&c.copy, c.o.Pipeline, c.o.Source)
	c.mu.Unlock()
	p.Items, p.Bytes, p.Letters = total.Items, total.Bytes, total.Letters
	p.ReadUnits, p.ReadBudget = c.stats.readUnits(), c.o.Budget.Usage().Rate
	if since := time.Since(c.began).Seconds(); since > 0 {
		p.Rate = float64(total.Items-c.first) / since
	}
	p.estimate(c.parts.ended())
	return p
}

// trouble is the error of a part that is retried while the other parts go on.
type trouble struct {
	part int
	why  string // empty for no trouble
}

// whyOf returns why something could not be read, and what an operator can do about it.
func whyOf(err error) string {
	if hint := source.Hint(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// noPart stands for trouble of the whole copy instead of one part.
const noPart = -1

// setTrouble notes why a part, or with noPart the copy, is retried. An empty why clears the trouble
// of that part.
func (c *Copier) setTrouble(part int, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why != "" || c.trouble.part == part {
		c.trouble = trouble{part, why}
	}
}

// setWaits notes why nothing is read at the moment; empty while something is.
func (c *Copier) setWaits(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = why
}

// WholeStatus is the progress of a resync of the whole table.
type WholeStatus struct {
	ID         string `json:"id"`    // of the order
	Doing      string `json:"doing"` // waiting, comparing, repairing, or open: something is not equal yet
	Items      int64  `json:"items"` // read from the table
	Estimate   int64  `json:"items_estimate"`
	Candidates int64  `json:"candidates"` // rows and items that may differ, as the comparison saw them
	Settled    int64  `json:"settled"`    // items among them of which it is known whether they differ
	Different  int64  `json:"different"`  // of Settled
	Repaired   int64  `json:"repaired"`
	Hot        int64  `json:"hot"`
	Unproven   int64  `json:"unproven"`
	Unowned    int64  `json:"unowned"` // cells that no guard assigns to an item: they do not keep the resync open
	Refused    int64  `json:"refused"`
	Why        string `json:"why,omitempty"` // why it waits or stays open
}

// OnlyRefused reports whether everything is compared, and nothing but items that the mapping or
// Bigtable refuse keeps the resync open: no further look ends that.
func (s *WholeStatus) OnlyRefused() bool {
	return s.Doing == "open" && s.Refused > 0 && s.Hot == 0 && s.Unproven == 0
}

// Differences describes the differences found so far. Until candidates are settled, the number of
// items that differ is unknown.
func (s *WholeStatus) Differences() string {
	text := fmt.Sprintf("%d may differ", s.Candidates)
	if s.Settled > 0 {
		text += fmt.Sprintf(", %d looked at again: %d different, %d repaired", s.Settled, s.Different, s.Repaired)
	}
	if open := s.Hot + s.Unproven + s.Refused; open > 0 {
		text += fmt.Sprintf(", %d open", open)
	}
	return text
}
