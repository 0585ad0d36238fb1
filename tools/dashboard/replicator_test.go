package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// running is a replicator beside a sandbox, each a process of its own.
type running struct {
	t                      *testing.T
	dir                    string
	dynamodb, bigtable, s3 string // addresses
	nats, admin            string
	written, works         int
}

const config = `
pipeline: dashboard
source: {region: us-east-1, endpoint: "http://%[1]s", idle_poll: 200ms}
bigtable: {project: local, instance: local, endpoint: "%[2]s"}
queue: {dir: ./log, max_bytes: 1GiB}
admin: {listen: "%[3]s"}
archive: {url: "file://archive", roll: 1s, max_bytes: 64MiB}
testing: {date_trust: 1ns, claim_ttl: 3s, listing: 2s}
tables:
- {source: Sessions, target: sessions, on_ttl_expiry: archive, verify: {read_units: 1000}}
`

// start starts both over a table with older items.
func start(t *testing.T) *running {
	t.Helper()
	r := &running{t: t, dir: t.TempDir()}
	for _, address := range []*string{&r.dynamodb, &r.bigtable, &r.nats, &r.s3, &r.admin} {
		*address = free(t)
	}
	r.write("tailrace.yaml", fmt.Sprintf(config, r.dynamodb, r.bigtable, r.admin))
	r.process("sandbox", "--dynamodb", r.dynamodb, "--bigtable", r.bigtable, "--nats", r.nats, "--s3", r.s3,
		"--ready-file", filepath.Join(r.dir, "ready"))
	r.until("the sandbox is ready", func() bool {
		_, err := os.Stat(filepath.Join(r.dir, "ready"))
		return err == nil
	})
	r.call("CreateTable", `{"TableName":"Sessions","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	r.call("UpdateTimeToLive",
		`{"TableName":"Sessions","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	for range 50 {
		r.put("old", time.Hour)
	}
	r.control("advance", `{"by":"10m"}`) // so that these items are older than what the first start reads of the stream
	if out, err := r.command("schema", "--apply").CombinedOutput(); err != nil {
		t.Fatalf("schema: %v\n%s", err, out)
	}
	r.control("bigtable_refuse_row", `{"prefix":"refused"}`)
	r.control("bigtable_next", `{"kind":"refuse","n":2}`)
	r.control("throttle", `{"operation":"GetRecords","times":3}`)
	r.process("run")
	r.until("the replicator replies", func() bool { return len(r.metrics()) > 0 })
	rehearsal := r.command("cutover", "--rehearse", "--table", "Sessions", "--quiet", "1s")
	if out, err := rehearsal.CombinedOutput(); rehearsal.ProcessState.ExitCode() != 4 { // it is being copied
		t.Fatalf("cutover --rehearse: %v\n%s", err, out)
	}
	return r
}

// work writes items, of which one expires, one is refused and the others are replicated.
func (r *running) work() {
	r.put("refused", time.Hour)
	r.put("expired", -time.Minute)
	for range 5 {
		r.put("new", time.Hour)
	}
	r.control("expire", "{}")
	if r.works++; r.works <= 70 {
		r.control("advance", `{"by":"1m"}`) // until an hour of the archive closes
	}
}

// put writes one more item, which expires after a time.
func (r *running) put(kind string, after time.Duration) {
	r.written++
	r.call("PutItem", fmt.Sprintf(`{"TableName":"Sessions","Item":{"id":{"S":"%s-%d"},"expires":{"N":"%d"}}}`,
		kind, r.written, time.Now().Add(after).Unix()))
}

// call sends a request to DynamoDB, signed with any key.
func (r *running) call(operation, body string) {
	r.t.Helper()
	req := r.request("http://"+r.dynamodb, body)
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	sum := sha256.Sum256([]byte(body))
	credentials := aws.Credentials{AccessKeyID: "any", SecretAccessKey: "key"}
	if err := v4.NewSigner().SignHTTP(r.t.Context(), credentials, req, hex.EncodeToString(sum[:]), "dynamodb", "us-east-1",
		time.Now()); err != nil {
		r.t.Fatal(err)
	}
	r.do(req)
}

// control sends a command to the sandbox.
func (r *running) control(command, body string) {
	r.t.Helper()
	r.do(r.request("http://"+r.dynamodb+"/_sandbox/"+command, body))
}

func (r *running) request(url, body string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	return req
}

func (r *running) do(req *http.Request) {
	r.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if reply, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %s: %s", req.URL, resp.Status, reply)
	}
}

// metrics returns what /metrics replies, nothing before it does.
func (r *running) metrics() []byte {
	resp, err := http.Get("http://" + r.admin + "/metrics")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return body
}

func (r *running) command(args ...string) *exec.Cmd {
	path, err := filepath.Abs("../../bin/replicator")
	if name := os.Getenv("REPLICATOR"); name != "" {
		path, err = name, nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=key")
	return cmd
}

// process runs a command until the test ends.
func (r *running) process(args ...string) {
	r.t.Helper()
	cmd := r.command(args...)
	log := r.create(args[0] + ".log")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		if out, _ := os.ReadFile(log.Name()); r.t.Failed() || err != nil {
			r.t.Logf("%s: %v\n%s", args[0], err, out)
		}
	})
}

func (r *running) create(name string) *os.File {
	r.t.Helper()
	f, err := os.Create(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (r *running) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// until waits for a fact, a minute at most.
func (r *running) until(what string, fact func() bool) {
	r.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !fact(); <-tick.C {
		if time.Since(began) > time.Minute {
			r.t.Fatalf("waited for a minute until %s", what)
		}
	}
}

// free returns an address on loopback where nobody listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
