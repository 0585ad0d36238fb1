package preflight

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/embedded"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestVolumeTooSmallForTheLogsIsFound(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		disk embedded.Disk
		want string
	}{
		"room for all": {embedded.Disk{Left: 50 * gib, Untaken: 20 * gib, PauseBelow: 8 * gib}, ""},
		"room for the logs alone": {embedded.Disk{Left: 30 * gib, Untaken: 20 * gib, PauseBelow: 8 * gib},
			"warning disk_short: logs, dead letters, requests and events for the archive may still take 40 GiB, " +
				"the volume of ./log has 30 GiB"},
		"reading would pause": {embedded.Disk{Left: 7 * gib, Untaken: 20 * gib, PauseBelow: 8 * gib, Low: true},
			"error disk_low: the volume of ./log has 7.0 GiB left for the logs; reading pauses below 8.0 GiB"},
	} {
		got := ""
		for _, p := range diskProblems(c.disk, queue.Needs{Grow: 40 * gib}, "./log") {
			got += p.Severity + " " + p.Code + ": " + p.What
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLimitWithoutRoomForTwoSnapshotsIsRefused(t *testing.T) {
	const snapshot = 5 << 20
	p := limitProblems("Orders", snapshot, 99<<20)
	if len(p) != 1 || p[0].Severity != "error" || p[0].Hint != "queue.max_bytes: 100MiB or more" {
		t.Errorf("99 MiB: %+v", p)
	}
	for _, limit := range []int64{100 << 20, 20 << 30} {
		if p := limitProblems("Orders", snapshot, limit); p != nil {
			t.Errorf("%d: %+v", limit, p)
		}
	}
	if p := limitProblems("Orders", 0, 64<<20); p != nil {
		t.Errorf("no snapshot yet: %+v", p)
	}
}

func TestNeededMemoryIsReported(t *testing.T) {
	cfg := config.Default()
	r := Run(t.Context(), &cfg, nil, Options{Offline: true})
	if r.Cost[CostMemory] != (300+64)<<20 || r.Cost[CostMemoryLarge] != (300+128+64)<<20 ||
		r.Cost[CostMemoryCopy] != 256<<20 {
		t.Error(r.Cost)
	}
}

func TestServersAndAccountAreJudged(t *testing.T) {
	const mib = 1 << 20
	good := queue.ServerInfo{Cluster: "c", Servers: 3, MaxPayload: queue.MaxPayload, Store: 100 * mib, Copies: 3}
	for name, c := range map[string]struct {
		change func(*queue.ServerInfo)
		need   int64
		want   string
	}{
		"as it should be": {func(*queue.ServerInfo) {}, 33 * mib, ""},
		"one server":      {func(s *queue.ServerInfo) { s.Cluster, s.Servers = "", 1 }, 0, "error replicas"},
		"two of three":    {func(s *queue.ServerInfo) { s.Servers = 2 }, 0, "warning replicas"},
		"small messages":  {func(s *queue.ServerInfo) { s.MaxPayload = mib }, 0, "error max_payload"},
		"a full account":  {func(s *queue.ServerInfo) { s.Reserved = 90 * mib }, 4 * mib, "error storage"},
		"a tier":          {func(s *queue.ServerInfo) { s.Copies = 1 }, 100 * mib, ""},
		"no limit":        {func(s *queue.ServerInfo) { s.Store = -1 }, 4 * mib, "warning storage_unverified"},
		"all is reserved": {func(s *queue.ServerInfo) { s.Store = -1 }, 0, ""},
	} {
		s := good
		c.change(&s)
		got := ""
		for _, p := range append(serverProblems(s, 3), storageProblems(s, c.need, 3)...) {
			got += p.Severity + " " + p.Code
			if p.Hint == "" || p.Path == "" {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestCallsThatAreNeverReachedAreFound: memory.total and the lanes bound the calls in flight, and the
// number that is reached is reported.
func TestCallsThatAreNeverReachedAreFound(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		inFlight, memory, tables int
		reached                  int64
		want                     string
	}{
		"the default":             {2048, 96 * mib, 1, 2048, ""},
		"as much as memory holds": {2451, 96 * mib, 1, 2451, ""},
		"more than memory holds": {4096, 96 * mib, 1, 2451,
			"with memory.total 96 MiB all tables together reach 2451 calls in flight, not 4096"},
		"the default in less memory": {2048, 64 * mib, 1, 1632,
			"with memory.total 64 MiB all tables together reach 1632 calls in flight, not 2048"},
		"with more memory": {4096, 192 * mib, 1, 4096, ""},
		"more than the lanes of each": {4096, 192 * mib, 32, 2048,
			"each of 32 tables has 2048 lanes with a call each, and reaches no more than 2048 in flight, not 4096"},
		"the default with many tables": {2048, 96 * mib, 64, 1024, ""},
	} {
		cfg := config.Default()
		cfg.Bigtable.MaxInFlight, cfg.Memory.Total = c.inFlight, config.Size(c.memory)
		cfg.Tables = make([]config.Table, c.tables)
		k := &check{Report: &Report{Cost: map[string]int64{}}, cfg: &cfg, catalog: &catalog.Catalog{}}
		k.inFlight()
		got := ""
		for _, p := range k.Environment {
			got += p.What
		}
		if got != c.want || k.Cost[CostCalls] != c.reached {
			t.Errorf("%s: %d, %q; want %d, %q", name, k.Cost[CostCalls], got, c.reached, c.want)
		}
	}
}

// TestTableThatRemovesRowsHasFewLanes: its changes wait for each other.
func TestTableThatRemovesRowsHasFewLanes(t *testing.T) {
	const mapping = `{families: {d: {}}, rules: [{name: r, match: {pk: "{p}"}, row: "{p}",
  cells: [{attr: v, to: "d:v"}]REMOVE}]}`
	for remove, want := range map[string]string{
		"":                 "",
		", on_remove: row": "Orders has a rule with on_remove: row, so it reaches 256 calls in flight, not 1000",
	} {
		reached, bound := 1000, byConfig
		if remove != "" {
			reached, bound = 256, byTurns
		}
		m, problems := transform.ParseMapping("orders.yaml", []byte(strings.Replace(mapping, "REMOVE", remove, 1)))
		if problem.AnyError(problems) {
			t.Fatal(problems)
		}
		schema := change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}
		p, problems := transform.Compile(transform.Table{
			Pipeline: "shop", Source: "Orders", Target: "orders", Schema: schema, View: "NEW_AND_OLD_IMAGES", Mapping: m,
		})
		if p == nil {
			t.Fatal(problems)
		}
		cfg := config.Default()
		cfg.Bigtable.MaxInFlight = 1000
		tables := &catalog.Catalog{Tables: []*catalog.Table{{Table: config.Table{Source: "Orders"}, Program: p}}}
		k := &check{Report: &Report{Cost: map[string]int64{}}, cfg: &cfg, catalog: tables}
		k.inFlight()
		got := ""
		for _, p := range k.Environment {
			got += p.What
		}
		if got != want {
			t.Errorf("%q: %q, want %q", remove, got, want)
		}
		if calls, by := k.callsOf(tables.Tables[0]); calls != reached || by != bound {
			t.Errorf("%q: %d calls in flight by %d, want %d by %d", remove, calls, by, reached, bound)
		}
		cfg.Tables = make([]config.Table, 128)
		if calls, by := k.callsOf(tables.Tables[0]); remove == "" && (calls != 512 || by != byTables) {
			t.Errorf("of many tables: %d calls in flight by %d", calls, by)
		}
		cfg.Memory.Total = 8 << 20
		if calls, by := k.callsOf(tables.Tables[0]); calls > 256 || by != byMemory {
			t.Errorf("%q, with little memory: %d calls in flight by %d", remove, calls, by)
		}
	}
}

// TestMemoryIsReportedWithoutBigtable: what can be computed is, where nothing can be measured.
func TestMemoryIsReportedWithoutBigtable(t *testing.T) {
	cfg := config.Default()
	k := &check{Report: &Report{Cost: map[string]int64{}}, cfg: &cfg, catalog: &catalog.Catalog{}}
	k.memory()
	k.capacity(t.Context())
	if c := k.Capacity; c == nil || c.Processors == 0 || c.Memory.Usual == 0 || c.Tables == nil {
		t.Errorf("%+v", k.Capacity)
	}
}
