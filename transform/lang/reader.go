package lang

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// reader reads one mapping file.
type reader struct {
	yamlfile.Reader
	acknowledged []Text // collected from all blocks
}

func newReader(file string) *reader {
	return &reader{Reader: yamlfile.Reader{
		Collector: problem.Collector{File: file}, KindCode: "syntax", ValueCode: "value", Elsewhere: partOf,
	}}
}

// pairs reads a block with keys that the author chooses.
func (r *reader) pairs(to *[]Pair) yamlfile.Field {
	return func(v *yaml.Node, path string) {
		r.Entries(v, path, func(k, v *yaml.Node, p string) {
			pair := Pair{Name: k.Value}
			r.Scalar(&pair.Value)(v, p)
			*to = append(*to, pair)
		})
	}
}

// duration reads a positive span of time.
func (r *reader) duration(to *time.Duration) yamlfile.Field {
	return func(v *yaml.Node, path string) {
		d, ok := parseDuration(v.Value)
		if !ok || d <= 0 {
			r.Errorf(yamlfile.TextAt(v, path), "value", "write 30d, 12h, 90m or 1s", "%q is not a duration", v.Value)
			return
		}
		*to = d
	}
}

// parseDuration reads Go's notation, and whole days such as 30d, the usual unit of retention.
func parseDuration(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err == nil && n < 100_000
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}
