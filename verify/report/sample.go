package report

import (
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// sampleSentence describes what random items show about a table. If none of n items differs, fewer
// than 3/n of all items differ, with a confidence of 95 %: a larger share would have shown itself
// in 95 of 100 samples. Items are drawn about evenly, so the bound is approximate.
func (t *Table) sampleSentence() string {
	n, pair := english.Plural(int(t.Items), "random item", ""), t.Source+" and "+t.Target
	drawn := ""
	if t.Items < t.Sample {
		drawn = fmt.Sprintf(" (%s asked for; no more were found)",
			english.Plural(int(t.Sample), "was", "were"))
	}
	seed := fmt.Sprintf(" Seed %d.", t.Seed)
	switch {
	case t.Items == 0:
		return fmt.Sprintf("%s: no item was found to be compared, so nothing is shown.%s", pair, seed)
	case t.Verdict == Different:
		return fmt.Sprintf("%s differ: of %s%s, %s different and %s refused by the mapping.%s", pair, n, drawn,
			are(t.Different, ""), are(t.Refused, ""), seed)
	case t.Verdict == Unproven:
		return fmt.Sprintf("%s are not proven equal: of %s%s, %s could not be decided.%s", pair, n, drawn,
			humanize.Comma(t.Unproven), seed)
	}
	return fmt.Sprintf("%s: no difference in %s%s: with 95 %% confidence, fewer than about %s of all are wrong. "+
		"Rows without an item and foreign cells were not looked for.%s", pair, n, drawn, share(t.Items), seed)
}

// share returns 3/n in percent.
func share(n int64) string { return fmt.Sprintf("%.3g %%", min(300/float64(n), 100)) }
