package restore

import (
	"context"

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
