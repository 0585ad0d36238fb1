package shadow

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestPatternsThatReadAlikeAreOneMetric: two forms of a read have the same text where one shows a whole
// capture and the other nothing of it. A registry refuses a metric that comes twice. What waits is in no
// counter, because it would leave it again.
func TestPatternsThatReadAlikeAreOneMetric(t *testing.T) {
	m, problems := transform.ParseMapping("m", []byte(`mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: order
  match: {pk: "{p}", sk: "O#{id}#{line}"}
  row: "{p}#{line}#{id}"
  cells: [{attr: x, to: "d:x"}]
`))
	key := change.KeyAttr{Name: "sk", Type: 'S'}
	schema := change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &key}
	p, more := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: "t", Schema: schema, Mapping: m})
	if p == nil {
		t.Fatal(problems, more)
	}
	r := pattern.NewReader(pattern.Table{Name: "Orders", Schema: schema, Program: p})
	c := pattern.NewCollector()
	const q = `{"TableName":"Orders","KeyConditionExpression":"pk = :p AND begins_with(sk, :s)",` +
		`"ExpressionAttributeValues":{":p":{"S":"a"},":s":{"S":"%"}}}`
	for _, begins := range []string{"O#", "O#12#"} {
		asked := r.Of("Query", []byte(strings.Replace(q, "%", begins, 1)))
		c.Add(asked, pattern.Answer{Bytes: 10})
		c.Replay(&asked.Asked[0].Of, func(x *pattern.Replay) {
			x.Replayed++
			x.Differed++ // and waits
		})
	}
	report := NewReport(r, c.Snapshot(), Passed{Total: 2, Taken: 2})
	if len(report.Patterns) != 2 || report.Patterns[0].Text != report.Patterns[1].Text {
		t.Fatalf("%+v", report.Patterns)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&Metrics{Report: func() (*Report, error) { return report, nil }})
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == "tailrace_shadow_replayed_total" && f.Metric[0].GetCounter().GetValue() != 2 ||
			f.GetName() == "tailrace_shadow_items_total" && f.Metric[2].GetCounter().GetValue() != 0 ||
			f.GetName() == "tailrace_shadow_response_bytes" && f.Metric[0].GetHistogram().GetSampleSum() != 20 {
			t.Errorf("%v", f)
		}
	}
	for i, l := range Merge([]*Report{report}).Patterns {
		if l.Verdict == nil || l.Verdict.Why != report.Patterns[i].Verdict.Why {
			t.Errorf("merged: %+v, want %+v", l.Verdict, report.Patterns[i].Verdict)
		}
	}
}
