package test

import (
	"bytes"
	"context"
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// browser returns the command of a Chromium. The test is skipped unless TAILRACE_BROWSER asks for it,
// as `make check` does: with a core for each page it takes a minute and a half.
func browser(t *testing.T) string {
	t.Helper()
	if os.Getenv("TAILRACE_BROWSER") == "" {
		t.Skip("make check runs it, in a Chromium")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium is installed, and TAILRACE_BROWSER asks for it: apt-get install chromium")
	return ""
}

// browsers bounds how many run at once: each takes a core.
var browsers = make(chan struct{}, 1)

// browse runs a Chromium on a page and returns what it prints.
func browse(t *testing.T, path, url string, args ...string) []byte {
	t.Helper()
	browsers <- struct{}{}
	defer func() { <-browsers }()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	args = append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir=" + t.TempDir(), "--timeout=4000",
	}, append(args, url)...)
	cmd := exec.CommandContext(ctx, path, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, errs.String())
	}
	return out.Bytes()
}

// dom returns the page as the browser sees it, once it has loaded.
func dom(t *testing.T, path, url string) string {
	t.Helper()
	return string(browse(t, path, url, "--dump-dom"))
}

var (
	titleOf = regexp.MustCompile(`(?s)<title>(.*?)</title>`)
	firstOf = regexp.MustCompile(`(?s)<h1>(.*?)</h1>`)
	tags    = regexp.MustCompile(`<[^>]*>`)
)

// said returns the text of the first match in one line.
func said(in *regexp.Regexp, page string) string {
	m := in.FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(m[1], ""))), " ")
}

// pictured are the states in which an operator may find the pipeline: how each comes about, and
// what the first line and the title say of it: state, cause, since when, next step.
var pictured = []struct {
	name, outage string
	says         string
}{
	{"healthy", "traffic", `^Healthy since .*: 1 table is replicated, 99 % .*Next: nothing to do`},
	{"bigtable-away", "Bigtable away", `^Bigtable away since .*: .*nothing is lost.*Next: replicator check`},
	{"nats-away", "NATS away", `^NATS away since .*: .*nothing is read or applied.*Next: replicator check`},
	{"throttled", "throttled", `^Throttled since .*: DynamoDB throttles .* Orders.*Next: .*other readers`},
	{"halted", "a change refused, on_reject: halt",
		`^Halted since .*: Orders is halted: .*Next: .*replicator resume --table Orders`},
	{"gap", "records lost before they were read",
		`^Gap since .*: changes of Orders were lost.*Next: replicator gaps list`},
	{"log-full", "the log full",
		`^Log full since .*: reading of Orders pauses: .*Bigtable is away.*Next: bring Bigtable back`},
	{"copying", "copying", `^Copying since .*: older items of Orders are copied.*Next: .*replicator copy`},
	{"dead-letters", "a change refused",
		`^Dead letters since .*: 1 change of Orders was refused.*Next: replicator dlq list --table Orders`},
}

// strikePictured causes a state that no entry of outages causes.
var strikePictured = map[string]func(s *stage){
	"throttled": func(s *stage) {
		if err := s.Faults.Inject(fault.Rule{Effect: fault.Throttle, Operation: "GetRecords", PerSecond: 2}); err != nil {
			s.t.Fatal(err)
		}
		s.putItems()
	},
	"copying": func(s *stage) {},
	"traffic": func(s *stage) {
		s.putItems()
		for _, shard := range s.Stream.OpenShards("Orders")[:2] {
			if _, err := s.Stream.Split(shard, 2); err != nil {
				s.t.Fatal(err)
			}
		}
		s.putItems()
		s.d.settle("Orders")
	},
}

// newCopyingStage starts a daemon over a table with older items, of which it can read none.
func newCopyingStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{world: newWorld(t, 251)}
	s.testing = periods("3s")
	s.tables = []string{"{source: Orders, target: orders, backfill: {from: scan}}"}
	s.prepare("Orders")
	s.putItems()
	if err := s.Faults.Inject(fault.Rule{Effect: fault.Throttle, Operation: "Scan"}); err != nil {
		t.Fatal(err)
	}
	s.d = s.run()
	s.d.until("the copy has begun", func() bool { return s.d.table("Orders").Copy != nil })
	return s
}

// TestFirstLineOfThePageSaysWhatIsWrong runs each state against the real program and opens its page
// in a browser.
func TestFirstLineOfThePageSaysWhatIsWrong(t *testing.T) {
	long(t, "90 s")
	chromium := browser(t)
	for _, c := range pictured {
		t.Run(c.name, func(t *testing.T) {
			var s *stage
			if c.outage == "copying" {
				s = newCopyingStage(t)
			} else {
				s = newStage(t, c.outage)
			}
			s.struck = time.Now()
			strike := outages[c.outage]
			if strike == nil {
				strike = strikePictured[c.outage]
			}
			strike(s)
			says := regexp.MustCompile(c.says)
			text := ""
			defer func() {
				if t.Failed() {
					t.Logf("the last first line: %s", text)
				}
			}()
			s.Until("the text for a terminal says what is wrong", func() bool {
				_, body := s.d.get("/")
				text, _, _ = strings.Cut(string(body), "\n")
				return says.MatchString(strings.ReplaceAll(text, "`", ""))
			})
			page := dom(t, chromium, "http://"+s.d.admin+"/")
			for what, got := range map[string]string{"title": said(titleOf, page), "first line": said(firstOf, page)} {
				if got = strings.ReplaceAll(got, "`", ""); !says.MatchString(got) {
					t.Errorf("the %s is %q, want %s", what, got, c.says)
				}
			}
			if strings.Contains(page, `id="offline" class="offline bad" role="alert">`) {
				t.Error("the page says that it has no connection")
			}
			table := dom(t, chromium, "http://"+s.d.admin+"/table/Orders")
			for _, want := range []string{"Last errors", "The last hour", `href="/"`} {
				if !strings.Contains(table, want) {
					t.Errorf("the page of the table has no %q", want)
				}
			}
			for _, hidden := range []string{"item0", "fedora"} {
				if strings.Contains(page+table, hidden) {
					t.Errorf("a page shows the key %q", hidden)
				}
			}
		})
	}
}
