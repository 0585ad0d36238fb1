package shadow

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
)

const query = `{"TableName":"Orders","KeyConditionExpression":"pk = :p",` +
	`"ExpressionAttributeValues":{":p":{"S":"secret"}}}`

// asked returns the exchange of a query.
func asked(body []byte, encoding string) *exchange.Exchange {
	return &exchange.Exchange{
		Target:  "DynamoDB_20120810.Query",
		Request: exchange.Body{Bytes: body, Encoding: encoding, Size: int64(len(body))},
		Answer:  exchange.Body{Size: 400}, Status: 200, Begin: time.Unix(1, 0), Duration: 3 * time.Millisecond,
	}
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// TestEngineCountsWhatThePipeHolds, packed or not, and names what it cannot read. A damaged frame
// ends it, and what came before is stored.
func TestEngineCountsWhatThePipeHolds(t *testing.T) {
	dir := t.TempDir()
	large := asked(nil, "")
	large.Request.Size = 2 << 20
	bomb := asked(gzipped(strings.Repeat(" ", exchange.MaxBody)+query), "gzip")
	failed := asked([]byte(query), "")
	failed.Status = 400
	var pipe []byte
	for _, x := range []*exchange.Exchange{
		asked([]byte(query), ""), asked(gzipped(query), "gzip"), large, asked([]byte("{"), ""), asked([]byte("x"), "gzip"),
		bomb, failed,
	} {
		pipe = exchange.Append(pipe, x)
	}
	e := NewEngine(pattern.NewReader(), filepath.Join(dir, "1.json"))
	if err := e.Run(t.Context(), bytes.NewReader(pipe)); err != nil {
		t.Fatal(err)
	}
	damaged := append(exchange.Append(nil, asked([]byte(query), "")), "no frame, but long enough for one"...)
	err := NewEngine(pattern.NewReader(), filepath.Join(dir, "2.json")).Run(t.Context(), bytes.NewReader(damaged))
	if err == nil || !strings.Contains(err.Error(), "frame 2") {
		t.Errorf("a damaged frame: %v", err)
	}
	s, err := CountsOf(dir) // of both processes
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Patterns) != 1 || s.Patterns[0].Requests != 4 || s.Patterns[0].Bytes.Sum != 1200 ||
		s.Patterns[0].Failed != 1 || s.Skipped[TooLarge] != 3 || s.Skipped[pattern.BadJSON] != 1 || s.Requests != 8 {
		t.Errorf("%+v", s)
	}
	for _, name := range []string{"1.json", "2.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if info, _ := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 ||
			bytes.Contains(text, []byte("secret")) {
			t.Errorf("%s: %v, %v: %s", name, info, err, text)
		}
	}
}

// TestReportsMerge: the reports of two fronts become one report, with the verdicts, also behind JSON.
func TestReportsMerge(t *testing.T) {
	one := func(n int) *Report {
		c := pattern.NewCollector()
		for range n {
			c.Add(pattern.Of("Query", []byte(query)), pattern.Answer{Bytes: 400, Took: time.Millisecond})
		}
		c.Add(pattern.Of("PutItem", []byte(`{"TableName":"Orders","Item":{}}`)), pattern.Answer{})
		r := NewReport(pattern.NewReader(), c.Snapshot(), Passed{Total: int64(n) + 2, Taken: int64(n) + 1, Dropped: 1})
		r.Began, r.Ended = time.Unix(int64(n), 0).UTC(), time.Unix(10-int64(n), 0).UTC()
		text, err := json.Marshal(r)
		back := &Report{}
		if err == nil {
			err = json.Unmarshal(text, back)
		}
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	all := Merge([]*Report{one(3), one(1)})
	if all.Passed != (Passed{Total: 8, Taken: 6, Dropped: 2}) || all.Counted != 6 || all.Began.Unix() != 1 ||
		all.Ended.Unix() != 9 || len(all.Patterns) != 2 || all.Patterns[0].Requests != 4 || all.Patterns[0].Bytes.P99 < 400 {
		t.Errorf("%+v", all)
	}
	want := "8 requests passed, 6 counted: 1 pattern of reads and 1 form of writes."
	if got := all.Sentence(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if all.OnlyTables([]string{"Users"}); len(all.Patterns) != 0 {
		t.Errorf("patterns of another table: %+v", all.Patterns)
	}
}

// TestReportsThatAreNone: a newer one, a damaged one, one without counts, and what is no report at
// all are refused, and do not count as nothing.
func TestReportsThatAreNone(t *testing.T) {
	c := pattern.NewCollector()
	c.Add(pattern.Of("Query", []byte(query)), pattern.Answer{Bytes: 400, Took: time.Millisecond})
	passed := Passed{Total: 3, Taken: 1, Unsampled: 1, Dropped: 1}
	text, err := json.Marshal(NewReport(pattern.NewReader(), c.Snapshot(), passed))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := ParseReport(text); err != nil || r.Passed.Total != 3 {
		t.Fatalf("a report: %+v, %v", r, err)
	}
	for name, change := range map[string][2]string{
		"newer":               {`"schema":1`, `"schema":2`},
		"newer counts":        {`"format":1`, `"format":2`},
		"no schema":           {`"schema":1`, `"scheme":1`},
		"no counts":           {`"counts"`, `"account"`},
		"fewer counted":       {`"counted":1`, `"counted":0`},
		"more passed":         {`"total":3`, `"total":30`},
		"another command's":   {string(text), `{"schema":1,"tables":[]}`},
		"cut off":             {`}`, ``},
		"two in one file":     {string(text), string(text) + string(text)},
		"an array of reports": {string(text), "[" + string(text) + "]"},
	} {
		damaged := strings.Replace(string(text), change[0], change[1], 1)
		if r, err := ParseReport([]byte(damaged)); err == nil || damaged == string(text) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestTablesThatAreLeftOutStayOut where reports are merged.
func TestTablesThatAreLeftOutStayOut(t *testing.T) {
	c := pattern.NewCollector()
	for _, table := range []string{"Orders", "Orders", "Users"} {
		c.Add(pattern.Of("Query", []byte(strings.Replace(query, "Orders", table, 1))), pattern.Answer{})
	}
	r := NewReport(pattern.NewReader(), c.Snapshot(), Passed{Total: 3, Taken: 3})
	r.OnlyTables([]string{"Users"})
	all := Merge([]*Report{r, r})
	if len(all.Patterns) != 1 || all.Patterns[0].Pattern.Table != "Users" || all.Counted != 6 ||
		all.Patterns[0].Share != 2.0/6 {
		t.Errorf("%+v", all)
	}
}
