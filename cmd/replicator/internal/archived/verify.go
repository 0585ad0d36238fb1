package archived

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
)

// Verified is what `archive verify` prints as JSON.
type Verified struct {
	Schema  int                `json:"schema"`
	Verdict manifest.Grade     `json:"verdict"` // the worst one
	Tables  []*manifest.Report `json:"tables"`
}

// Add takes the report of a table.
func (v *Verified) Add(r *manifest.Report) {
	v.Schema, v.Tables = schema, append(v.Tables, r)
	if v.Verdict == "" || r.Verdict == manifest.Different || v.Verdict == manifest.OK {
		v.Verdict = r.Verdict
	}
}

// Verify compares the archive of a table with its manifests.
func Verify(ctx context.Context, b bucket.Bucket, table string, o manifest.Options) (*manifest.Report, error) {
	o.Read = readContent
	r, err := manifest.Verify(ctx, b, table, o)
	return r, Failed(err)
}

// Print prints a report in sentences.
func Print(w io.Writer, r *manifest.Report) {
	fmt.Fprintf(w, "%s: %s. %s\n", r.Table, r.Verdict, verdicts[r.Verdict])
	if r.Hours > 0 {
		fmt.Fprintf(w, "  %s from %s to %s: %s with %s in %s; %s.\n",
			english.Plural(r.Hours, "closed hour", ""), r.First, r.Last, plural(r.Objects, "object"), plural(r.Events, "event"),
			humanize.Bytes(uint64(r.Bytes)), depths[r.Depth])
		fmt.Fprintf(w, "  %s by time to live: %s not to be archived by the mapping, %s.\n",
			plural(r.Deleted, "deletion"), humanize.Comma(r.Skipped), plural(r.Letters, "dead letter"))
	}
	if r.Open+r.Late > 0 {
		fmt.Fprintf(w, "  Not checked, because no manifest names them yet: %s of open hours, %s of late events.\n",
			plural(r.Open, "object"), humanize.Comma(r.Late))
	}
	shown := map[manifest.Kind]int{}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "  %s: %s\n", f.Grade, f.Text)
		shown[f.Kind]++
	}
	for _, kind := range r.Kinds() {
		if more := r.Counts[kind] - shown[kind]; more > 0 {
			fmt.Fprintf(w, "  … and %s more of the kind %s\n", humanize.Comma(int64(more)),
				strings.ReplaceAll(string(kind), "_", " "))
		}
	}
}

// verdicts says what a verdict means.
var verdicts = map[manifest.Grade]string{
	manifest.OK:        "The archive holds what its manifests say, once each, and nothing else.",
	manifest.Different: "The archive is not what its manifests say.",
	manifest.Unproven:  "Nothing that was checked is wrong, but not everything could be shown.",
}

// depths says how much of each object was read.
var depths = map[manifest.Depth]string{
	manifest.Quick: "of each object the size and the footer were compared",
	manifest.Bytes: "of each object every byte was compared, by its SHA-256",
	manifest.Full:  "of each object every byte and every event was compared",
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(n) + " " + noun + "s"
}
