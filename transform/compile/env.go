package compile

import (
	"encoding/hex"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// env is what a rule's templates may refer to.
func (c *compiler) env(r *ir.Rule, segments problem.Text) *tmpl.Env {
	mode := segments.S
	if mode == "" {
		mode = c.Mapping.Segments.S
	}
	if mode == "" {
		mode = tmpl.SegStrict
	}
	return &tmpl.Env{Captures: r.Captures, Keys: c.KeyTypes(), Attrs: true, Segments: mode, Delim: c.Delimiter(),
		Secrets: c.Secrets}
}

func text(s string) problem.Text { return problem.Text{S: s} }

func literalBytes(s string) ([]byte, bool) {
	h, isHex := strings.CutPrefix(s, "0x")
	if !isHex {
		return []byte(s), true
	}
	b, err := hex.DecodeString(h)
	return b, err == nil
}
