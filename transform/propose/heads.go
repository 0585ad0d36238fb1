package propose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform"
)

// heads counts the values that the rows of a rule or index begin with.
type heads struct {
	lead   transform.Lead
	first  map[string]int // first parts
	rows   int
	times  int // rows that begin with something like a time
	digits int // rows that begin with digits only
}

func (h *heads) add(l transform.Lead) {
	h.rows++
	part, _, _ := strings.Cut(l.Value, "#")
	h.first[part]++
	if looksLikeDate(l.Value) || looksLikeEpoch(l.Value) {
		h.times++
	}
	if isDigits(l.Value) {
		h.digits++
	}
}

// spread reports whether a filter distributes consecutive values over the table.
func (h *heads) spread() bool {
	return slices.ContainsFunc(h.lead.Filters, func(f string) bool { return f == "revstr" || f == "hash" || f == "hmac" })
}

// minRows is the smallest sample from which a frequent first part is reported.
const minRows = 100

// findings reports rows that go to one place: by a frequent first part, or by values that grow with
// time.
func (h *heads) findings(ps *problem.Collector) {
	at, of := problem.Text{Path: h.lead.Row}, "{"+h.lead.Of+"}"
	if n := hottest(h.first); h.rows >= minRows && n*5 > h.rows && len(h.first) > 1 {
		ps.Warnf(at, "hot_segment", "put a salt or another part first: {salt("+h.lead.Of+";16)}#…",
			"%d %% of the rows have the same first part, of %s", 100*n/h.rows, of)
	}
	if h.spread() || h.lead.Known || h.rows < 2 {
		return
	}
	if h.times*2 > h.rows {
		ps.Warnf(at, "timestamp_first", "put an id with many values first",
			"rows begin with a time, %s: all new rows go to one place", of)
	} else if h.digits == h.rows && len(h.first)*2 > h.rows {
		ps.Warnf(at, "sequential", "{"+h.lead.Of+"|revstr} spreads sequential numbers",
			"rows begin with a number, %s: if it grows with time, all new rows go to one place", of)
	}
}

// hottest returns the highest count.
func hottest(counts map[string]int) (n int) {
	for _, count := range counts {
		n = max(n, count)
	}
	return n
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// looksLikeEpoch reports whether a text may be unix seconds or milliseconds between 2001 and 2065.
func looksLikeEpoch(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && (n > 1e9 && n < 3e9 || n > 1e12 && n < 3e12)
}

// looksLikeDate reports whether a text begins with a date such as 2026-11-21.
func looksLikeDate(s string) bool {
	return len(s) >= 10 && isDigits(s[:4]) && s[4] == '-' && isDigits(s[5:7]) && s[7] == '-' && isDigits(s[8:10])
}
