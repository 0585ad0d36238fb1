package control_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/control"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

func newConsole(t *testing.T) *control.Console {
	t.Helper()
	c := clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	front, err := bigtable.Open(bigtable.Options{Addr: "127.0.0.1:0", Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	l := ledger.New(stream.Numbers(1))
	e := stream.New(stream.Options{Clock: c, Seed: 1, Ledger: l})
	db := dynamo.New(dynamo.Options{Stream: e})
	if err := db.Restore(strings.NewReader(`{"Format":1,"Items":0,"Table":{"Name":"Orders","Status":"ACTIVE",` +
		`"OnDemand":true,"StreamView":"KEYS_ONLY",` +
		`"Attributes":[{"AttributeName":"pk","AttributeType":"S"}],` +
		`"Keys":[{"AttributeName":"pk","KeyType":"HASH"}]}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	return control.New(control.Parts{
		Clock: c, Stream: e, DynamoDB: db, HTTP: fault.New(c, 1), Ledger: l, Bigtable: front,
		Expire: func(time.Time) int { return 7 },
	})
}

func TestEveryCommandIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/sandbox-faults.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range newConsole(t).Help() {
		at := strings.Index(string(text), "| `"+u.Name+"`")
		if at < 0 {
			at = strings.Index(string(text), ", `"+u.Name+"` |")
		}
		if at < 0 {
			t.Errorf("command %s is not in the table", u.Name)
			continue
		}
		line, _, _ := strings.Cut(string(text)[at:], "\n")
		for _, arg := range u.Arguments {
			shared := map[string]bool{"shard": true, "open": true, "table": true, "operation": true, "times": true, "odds": true}
			if !shared[arg] && !strings.Contains(line, "`"+arg+"`") {
				t.Errorf("argument %s of %s is not in its line", arg, u.Name)
			}
		}
	}
}

func TestEveryCommandRuns(t *testing.T) {
	c := newConsole(t)
	args := map[string]string{
		"split": `{"table":"Orders","open":-1}`, "trim": `{"older_than":"1h"}`, "drop_shard": `{"table":"Orders"}`,
		"throttle_shard": `{"table":"Orders","per_second":1.5}`, "error": `{"code":"X"}`, "bigtable_next": `{"kind":"late"}`,
		"counts":     `{"table":"Orders","items":7}`,
		"read_limit": `{"table":"Orders","hot":1}`,
		"stream_off": `{"table":"Orders"}`,
		"stream_on":  `{"table":"Orders"}`, "bigtable_code": `{"code":"internal"}`,
		"changes": `{"table":"Orders"}`, "rotate_every": `{"every":"4h"}`,
	}
	for _, u := range c.Help() {
		if u.Name == "bigtable_outage" {
			continue // it would make the others fail
		}
		if _, err := c.Do(t.Context(), u.Name, []byte(args[u.Name])); err != nil {
			t.Errorf("%s: %v", u.Name, err)
		}
	}
}

func TestWrongCommandsAreRefused(t *testing.T) {
	c := newConsole(t)
	for name, cmd := range map[string][2]string{
		"command":  {"explode", "{}"},
		"argument": {"split", `{"table":"Orders","into":2}`},
		"type":     {"split", `{"table":7}`},
		"duration": {"advance", `{"by":"long"}`},
		"table":    {"split", `{"table":"Nowhere"}`},
		"shard":    {"split", `{"shard":"Nowhere"}`},
		"number":   {"split", `{"table":"Orders","open":9}`},
		"code":     {"throttle_shard", `{"table":"Orders","code":"X"}`},
		"grpc":     {"bigtable_code", `{"code":"X"}`},
		"kind":     {"bigtable_next", `{"kind":"X"}`},
		"odds":     {"cut", `{"odds":2}`},
		"no code":  {"error", `{}`},
		"time":     {"trim", `{}`},
	} {
		if _, err := c.Do(t.Context(), cmd[0], []byte(cmd[1])); err == nil {
			t.Errorf("%s: %v is taken", name, cmd)
		}
	}
}

func TestCommandsOverHTTP(t *testing.T) {
	srv := httptest.NewServer(newConsole(t))
	defer srv.Close()
	post := func(path, body string) (int, map[string]any) {
		t.Helper()
		res, err := http.Post(srv.URL+control.Prefix+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var out map[string]any
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, out
	}
	if status, out := post("split", `{"table":"Orders","n":3}`); status != 200 ||
		len(out["result"].(map[string]any)["children"].([]any)) != 3 {
		t.Errorf("split: %d %v", status, out)
	}
	if status, out := post("expire", ""); status != 200 || out["result"].(map[string]any)["expired"] != 7.0 {
		t.Errorf("expire: %d %v", status, out)
	}
	if status, out := post("nonsense", ""); status != 400 || out["error"] == nil {
		t.Errorf("nonsense: %d %v", status, out)
	}
}

func TestTimelineFollowsTheSandboxClock(t *testing.T) {
	c := newConsole(t)
	line, err := control.ParseTimeline([]byte(`
- {at: 2h, do: split, table: Orders, open: 0, n: 2}
- {at: 1h, every: 1h, count: 3, do: rotate, table: Orders}
- {at: 10h, do: split, table: Nowhere}
`))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	go func() { done <- line.Run(ctx, c) }()
	for err = nil; err == nil; {
		select {
		case err = <-done:
		default:
			c.Clock.Advance(time.Minute)
		}
	}
	if !strings.Contains(err.Error(), "entry 3") {
		t.Errorf("timeline ended with %v, want the failure of entry 3", err)
	}
	if n := len(c.Stream.OpenShards("Orders")); n != 5 {
		t.Errorf("%d open shards, want 5", n)
	}
}

func TestWrongTimelinesAreRefused(t *testing.T) {
	for _, text := range []string{
		"do: split", "- {at: 1s}", "- {at: soon, do: calm}", "- {do: calm, count: 3}", "- {do: calm, every: 1s, count: none}",
	} {
		if _, err := control.ParseTimeline([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
