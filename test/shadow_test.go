package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tailrace-cdc/replicator/shadow"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// shadowed is a running `replicator shadow`.
type shadowed struct {
	w         *world
	cmd       *exec.Cmd
	out, errs *output
	client    *http.Client // whose requests go through the front
	posts     int64
	daemon    *daemon // with which the time goes on while the command ends; may be nil
}

var frontAddress = regexp.MustCompile(`HTTP_PROXY=(http://\S+)`)

// shadow starts a front that counts patterns.
func (w *world) shadow(args ...string) *shadowed {
	w.t.Helper()
	return w.startShadow(append([]string{"--patterns"}, args...)...)
}

// startShadow starts a front.
func (w *world) startShadow(args ...string) *shadowed {
	w.t.Helper()
	s := &shadowed{w: w, out: &output{}, errs: &output{}}
	s.cmd = exec.Command(w.program(), append([]string{"shadow", "--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = w.dir, w.env(), s.out, s.errs
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	w.Until("the front listens", func() bool { return frontAddress.MatchString(s.errs.String()) })
	front, err := url.Parse(frontAddress.FindStringSubmatch(s.errs.String())[1])
	if err != nil {
		w.t.Fatal(err)
	}
	s.client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(front), DisableCompression: true}}
	return s
}

// ask sends a request of DynamoDB and returns the answer.
func (s *shadowed) ask(client *http.Client, endpoint, operation, body string) string {
	s.w.t.Helper()
	r, err := http.NewRequestWithContext(s.w.t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		s.w.t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Date", "20260101T000000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=sandbox/20260101/us-east-1/dynamodb/aws4_request, "+
		"SignedHeaders=host, Signature=0")
	reply, err := client.Do(r)
	if err != nil {
		s.w.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		s.w.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", reply.StatusCode, text)
}

// post sends a request through the front, as an application does.
func (s *shadowed) post(operation, body string) string {
	s.w.t.Helper()
	s.posts++
	return s.ask(s.client, "http://dynamodb.us-east-1.amazonaws.com/", operation, body)
}

// engine returns the process of the engine.
func (s *shadowed) engine() (pid int) {
	s.w.Until("the engine runs", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
		for _, file := range threads { // each thread may have started it
			children, _ := os.ReadFile(file) // of a thread that has ended: none
			if fields := strings.Fields(string(children)); len(fields) > 0 {
				pid, err = strconv.Atoi(fields[0])
			}
		}
		return err == nil && pid > 0
	})
	return pid
}

const hatsQuery = `{"TableName":"Orders","KeyConditionExpression":"pk = :p",` +
	`"ExpressionAttributeValues":{":p":{"S":"hats"}}}`

// use writes and reads through the front, and compares each answer with that of the service.
func (s *shadowed) use(n int) {
	s.w.t.Helper()
	for range n {
		put := fmt.Sprintf(`{"TableName":"Orders","Item":{"pk":{"S":"hats"},"sk":{"S":"fedora%d"},"n":{"N":"1"}}}`, s.posts)
		if got := s.post("PutItem", put); got != "200 {}" {
			s.w.t.Fatalf("put: %s", got)
		}
		direct := s.ask(http.DefaultClient, s.w.dynamo.url, "Query", hatsQuery)
		if got := s.post("Query", hatsQuery); got != direct {
			s.w.t.Fatalf("query: %s, without the front %s", got, direct)
		}
	}
}

// end interrupts the command, which ends with 0, and returns its report.
func (s *shadowed) end() (r shadow.Report) {
	s.w.t.Helper()
	return s.endWith(0)
}

// endWith is end for another exit code.
func (s *shadowed) endWith(code int) (r shadow.Report) {
	s.w.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		ended <- s.cmd.Wait()
		close(over)
	}()
	if s.daemon != nil {
		s.daemon.hastenUntil("the command ends", over)
	}
	if err := <-ended; s.cmd.ProcessState.ExitCode() != code {
		s.w.t.Fatalf("%v, want %d: %s%s", err, code, s.out.String(), s.errs.String())
	}
	if err := json.Unmarshal([]byte(s.out.String()), &r); err != nil {
		s.w.t.Fatalf("%v: %s", err, s.out.String())
	}
	p := r.Passed
	if p.Total != s.posts || p.Total != p.Taken+p.Unsampled+p.Dropped || r.Counted != p.Taken {
		s.w.t.Errorf("%d requests: %+v, %d counted", s.posts, p, r.Counted)
	}
	if all := s.out.String() + s.errs.String(); strings.Contains(all, "fedora") || strings.Contains(all, "hats") {
		s.w.t.Errorf("a key is shown: %s", all)
	}
	return r
}

// TestShadowPassesRequestsOnAndCountsThem: an application reads and writes through the front, and
// gets what it gets without it. The report names its reads with their rows, and no key.
func TestShadowPassesRequestsOnAndCountsThem(t *testing.T) {
	w := newWorld(t, 880)
	w.prepare("Orders")
	s := w.shadow("--json")
	s.use(15)
	r := s.end()
	reads := 0
	for _, l := range r.Patterns {
		if v := l.Verdict; v != nil && v.Grade == access.Served && v.Read.How == "prefix" {
			reads++
		}
	}
	if reads != 1 || len(r.Patterns) != 2 || r.Counted != s.posts {
		t.Errorf("%+v", r)
	}
	w.write("one.json", s.out.String())
	w.write("other.json", strings.Replace(s.out.String(), "{", "{ ", 1))
	var both shadow.Report
	if err := json.Unmarshal([]byte(w.ok("shadow", "report", "one.json", "other.json", "--json")), &both); err != nil ||
		both.Passed.Total != 2*s.posts || both.Patterns[0].Requests != 2*r.Patterns[0].Requests {
		t.Errorf("two reports: %v, %+v", err, both)
	}
}

// Attack 104: it is killed and frozen, and each request passes.
func TestEngineOfShadowHoldsNoRequest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the engine is found through /proc")
	}
	w := newWorld(t, 881)
	w.prepare("Orders")
	s := w.shadow("--json")
	s.use(3)
	_ = syscall.Kill(s.engine(), syscall.SIGKILL)
	s.use(3)
	_ = syscall.Kill(s.engine(), syscall.SIGSTOP)
	s.use(30)
	if r := s.end(); r.Passed.Dropped == 0 {
		t.Errorf("what the engine had when it was killed is counted: %+v", r.Passed)
	}
}

// TestEngineOutlivesTheSignalsOfItsGroup: a terminal sends Ctrl-C to the front and the engine, and
// the engine still counts the last exchanges.
func TestEngineOutlivesTheSignalsOfItsGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the engine is found through /proc")
	}
	w := newWorld(t, 882)
	w.prepare("Orders")
	s := w.shadow("--json")
	s.use(3)
	engine := s.engine()
	w.Until("the engine has begun", func() bool {
		const ignored = 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGTERM-1)
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", engine))
		_, mask, _ := strings.Cut(string(text), "SigIgn:\t")
		mask, _, _ = strings.Cut(mask, "\n")
		signals, _ := strconv.ParseUint(mask, 16, 64)
		return err == nil && signals&ignored == ignored
	})
	for range 2 {
		_ = syscall.Kill(engine, syscall.SIGINT)
		_ = syscall.Kill(engine, syscall.SIGTERM)
	}
	s.use(3)
	if r := s.end(); r.Passed.Dropped != 0 {
		t.Errorf("the engine has ended: %+v", r.Passed)
	}
}

// Attack 103: its engine ends, and removes the counts.
func TestKilledFrontLeavesNothingBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the engine is found through /proc")
	}
	w := newWorld(t, 883)
	w.prepare("Orders")
	w.more = append(w.more, "TMPDIR="+t.TempDir())
	s := w.shadow()
	s.use(3)
	first := s.engine()
	_ = syscall.Kill(first, syscall.SIGKILL)
	s.use(3)
	w.Until("another engine runs", func() bool { return s.engine() != first })
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // it was killed
	w.Until("nothing is left", func() bool {
		left, err := filepath.Glob(filepath.Join(strings.TrimPrefix(w.more[len(w.more)-1], "TMPDIR="), "*"))
		return err == nil && len(left) == 0
	})
}

// Attack 106: the second one on an address is told so, because each has a part of the requests.
func TestTwoFronts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("one listener an address here")
	}
	w := newWorld(t, 884)
	w.prepare("Orders")
	first := w.shadow("--json")
	address := strings.TrimPrefix(frontAddress.FindStringSubmatch(first.errs.String())[1], "http://")
	second := w.shadow("--json", "--listen", address)
	const told = "Another front listens"
	w.Until("it is told", func() bool { return strings.Contains(second.errs.String(), told) })
	if strings.Contains(first.errs.String(), told) {
		t.Errorf("the first one: %s", first.errs.String())
	}
}

// TestShadowNeedsNoBigtable, nor an endpoint in the configuration that `init` proposes: it goes
// where the environment sends its own calls.
func TestShadowNeedsNoBigtable(t *testing.T) {
	w := newWorld(t, 882)
	w.CreateTable("Orders")
	w.more = append(w.more, "AWS_ENDPOINT_URL_DYNAMODB="+w.dynamo.url, "AWS_ENDPOINT_URL="+w.dynamo.url,
		"AWS_REGION=us-east-1")
	w.ok("init", "--table", "Orders", "-o", "proposed.yaml")
	s := w.shadow("--json", "--config", "proposed.yaml")
	s.use(3)
	s.end()
}
