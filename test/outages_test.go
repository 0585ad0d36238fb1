package test

import (
	"encoding/base64"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

// outageRow is a row of the table in docs/operations.md: | outage | `part of /readyz` | alerts |.
type outageRow struct {
	says   string   // part of a line of /readyz; "": ready, "-": no answer
	alerts []string // in order
}

var tableRow = regexp.MustCompile("(?m)^\\| ([^|`]+?) \\| (?:`([^`]*)`|ready|no answer) \\| ([^|]*?) \\|$")

// outageTable reads the table of docs/operations.md by outage.
func outageTable(t *testing.T) map[string]outageRow {
	_, text, _ := strings.Cut(read(t, "../docs/operations.md"), "\n## What an outage looks like\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := map[string]outageRow{}
	for _, m := range tableRow.FindAllStringSubmatch(text, -1) {
		row := outageRow{says: m[2]}
		if strings.Contains(m[0], "| no answer |") {
			row.says = "-"
		}
		for _, a := range strings.Split(m[3], ", ") {
			if a != "none" && a != "" {
				row.alerts = append(row.alerts, "Tailrace"+strings.TrimPrefix(a, "Tailrace"))
			}
		}
		slices.Sort(row.alerts)
		rows[m[1]] = row
	}
	return rows
}

// stage is a world with one daemon whose connections can be cut.
type stage struct {
	*world
	d                            *daemon
	toDynamo, toBigtable, toNATS *relay
	struck                       time.Time // when the outage began
}

// newStage starts a daemon with the configuration for an outage, and waits until it is ready.
func newStage(t *testing.T, outage string) *stage {
	t.Helper()
	w := newWorld(t, 250)
	s := &stage{
		world: w, toDynamo: newRelay(t, strings.TrimPrefix(w.dynamo.url, "http://")),
		toBigtable: newRelay(t, w.bigtable.addr), toNATS: newRelay(t, strings.TrimPrefix(w.NATS.URL(), "nats://")),
	}
	w.dynamo.url, w.bigtable.addr = "http://"+s.toDynamo.addr, s.toBigtable.addr
	w.testing = periods("3s")
	switch outage {
	case "NATS away", "NATS and Bigtable away", "another client writes into the log":
		w.queue = `{url: "nats://` + s.toNATS.addr + `", max_bytes: 64MiB}`
	case "a change refused, on_reject: halt":
		w.tables = []string{"{source: Orders, target: orders, on_reject: halt}"}
	}
	w.prepare("Orders")
	s.d = w.run()
	s.d.settle("Orders")
	s.d.checkClean()
	return s
}

// observe waits until /readyz and the alerts are as wanted, and returns the metrics, the firing
// alerts and the text of /readyz. With -update it takes what they are after 30 seconds.
func (s *stage) observe(rules []alertRule, want outageRow) (c capture, alerts []string, why string) {
	s.t.Helper()
	seen := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("last seen: %s", seen)
		}
	}()
	s.Until("/readyz and alerts are as docs/operations.md says", func() bool {
		code, body := s.d.get("/readyz")
		c, why = s.d.capture(), strings.TrimSpace(string(body))
		alerts = firing(rules, c)
		seen = fmt.Sprintf("%d %s; alerts %v", code, why, alerts)
		if *update && time.Since(s.struck) > 30*time.Second {
			return true
		}
		return code == want.code() && (want.says == "-" || strings.Contains(why, want.says)) &&
			slices.Equal(alerts, want.alerts)
	})
	return c, alerts, why
}

// code returns the status code of /readyz, 0 when nothing answers.
func (r *outageRow) code() int {
	switch r.says {
	case "":
		return 200
	case "-":
		return 0
	}
	return 503
}

// deny makes DynamoDB deny the permission for an operation.
func (s *stage) deny(op string) {
	s.t.Helper()
	s.refuse(op, "AccessDeniedException")
}

// refuse makes DynamoDB answer an operation with an error code.
func (s *stage) refuse(op, code string) {
	s.t.Helper()
	if err := s.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: op, Code: code}); err != nil {
		s.t.Fatal(err)
	}
}

// putItems writes 60 items with different partition keys, so that they use many lanes.
func (s *stage) putItems() {
	s.t.Helper()
	for i := range 60 {
		s.Put("Orders", fmt.Sprint("item", i), "x", `"n":{"N":"1"}`)
	}
}

// outages cause each outage of the table in docs/operations.md.
var outages = map[string]func(s *stage){
	"none": func(s *stage) {},
	"NATS away": func(s *stage) {
		s.toNATS.cut()
		s.putItems()
	},
	"Bigtable away": func(s *stage) {
		s.toBigtable.cut()
		s.putItems()
	},
	"NATS and Bigtable away": func(s *stage) {
		s.toBigtable.cut()
		s.putItems()
		s.d.until("Bigtable fails", func() bool { st, ok := s.d.status(); return ok && len(st.Failing) > 0 })
		s.toNATS.cut()
	},
	"DynamoDB away":     func(s *stage) { s.toDynamo.cut() },
	"GetRecords denied": func(s *stage) { s.deny("GetRecords") },
	"Bigtable denies every write": func(s *stage) {
		s.Bigtable.Faults.RefuseRow([]byte("item"), codes.PermissionDenied, -1)
		s.putItems()
	},
	"a change refused": func(s *stage) {
		s.Bigtable.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, -1)
		s.Put("Orders", "bad", "x", "")
	},
	"a change refused, on_reject: halt": func(s *stage) {
		s.Bigtable.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, -1)
		s.Put("Orders", "bad", "x", "")
	},
	"records lost before they were read": func(s *stage) {
		s.refuse("GetRecords", "InternalServerError")
		s.putItems()
		s.Clock.Advance(25 * time.Hour)
		s.Stream.Sweep()
		s.Faults.Withdraw("", "")
	},
	"the log full": func(s *stage) {
		s.toBigtable.cut()
		for i := range 400 {
			if s.d.table("Orders").Queue.Bytes > 64<<20*8/10 {
				break
			}
			s.Put("Orders", fmt.Sprint("item", i), "x", `"big":{"B":"`+noise(uint64(i), 200<<10)+`"}`)
		}
	},
	"reading fails for 19 hours": func(s *stage) {
		s.refuse("GetRecords", "InternalServerError")
		s.putItems()
		s.Clock.Advance(19 * time.Hour)
	},
	"paused": func(s *stage) {
		s.ok("pause", "--table", "Orders")
		s.putItems()
	},
	"another client writes into the log": func(s *stage) {
		nc, err := nats.Connect(s.NATS.URL())
		if err != nil {
			s.t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			s.t.Fatal(err)
		}
		all := js.ListStreams(s.t.Context())
		for info := range all.Info() {
			if len(info.Config.Subjects) == 3 {
				if _, err := js.Publish(s.t.Context(), info.Config.Subjects[0], []byte("hello")); err != nil {
					s.t.Fatal(err)
				}
			}
		}
	},
	"no replicator": func(s *stage) { s.d.kill() },
}

// TestOutagesShowInProbesAndAlerts runs each outage against the real program, and compares /readyz
// and the alerts that /metrics cause with the table in docs/operations.md. With -update it writes
// the metrics as tests for promtool.
func TestOutagesShowInProbesAndAlerts(t *testing.T) {
	long(t, "60 s")
	t.Parallel()
	rules, table := alertRules(t), outageTable(t)
	var mu sync.Mutex
	captured := map[string]string{}
	t.Run("all", func(t *testing.T) {
		for name, strike := range outages {
			t.Run(name, func(t *testing.T) {
				s := newStage(t, name)
				s.struck = time.Now()
				strike(s)
				want, known := table[name]
				if !known && !*update {
					t.Fatal("docs/operations.md has no row for it")
				}
				c, alerts, why := s.observe(rules, want)
				mu.Lock()
				captured[name] = c.promtool(name, rules, alerts)
				mu.Unlock()
				t.Logf("| %s | `%s` | %s |", name, why, strings.ReplaceAll(strings.Join(alerts, ", "), "Tailrace", ""))
			})
		}
	})
	for name := range table {
		if outages[name] == nil {
			t.Errorf("docs/operations.md has a row %q, which no test causes", name)
		}
	}
	if *update {
		text := "# What outages show: two scrapes of the real program each, drawn on for 45 minutes. Written by\n" +
			"# go test ./test -run TestOutages -update\n" +
			"rule_files: [alerts.yaml]\nevaluation_interval: 1m\ntests:\n"
		for _, name := range sortedKeys(captured) {
			text += captured[name]
		}
		if err := os.WriteFile("../deploy/alerts_outages_test.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// noise returns n random bytes in base64, which do not compress.
func noise(seed uint64, n int) string {
	r, b := rand.New(rand.NewPCG(seed, 9)), make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)
}

func sortedKeys(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
