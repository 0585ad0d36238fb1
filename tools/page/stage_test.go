package page

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/chromedp/chromedp"
)

const config = `
pipeline: page
source: {region: us-east-1, endpoint: "http://%s"}
bigtable: {project: local, instance: local, endpoint: "%s"}
queue: {dir: ./log, max_bytes: 1GiB}
admin: {listen: "%s"}
tables:
- {source: Orders, target: orders}
`

// stage is a replicator beside a sandbox, each a process of its own.
type stage struct {
	t      *testing.T
	dir    string
	admin  string // its address
	db     string // the address of DynamoDB
	client *dynamodb.Client
	daemon *exec.Cmd
}

// newStage starts both over an empty table.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), admin: free(t), db: free(t)}
	bt := free(t)
	s.configure(config, s.db, bt, s.admin)
	s.startSandbox(bt, free(t))
	s.createTable("Orders", withStream)
	s.command("schema", "--apply")
	s.daemon = s.start("run")
	return s
}

func (s *stage) configure(format string, args ...any) {
	s.t.Helper()
	s.file("tailrace.yaml", fmt.Sprintf(format, args...))
}

// file writes one beside the configuration.
func (s *stage) file(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// startSandbox starts a sandbox and waits until it is ready.
func (s *stage) startSandbox(bigtable, nats string) {
	s.t.Helper()
	ready := filepath.Join(s.dir, "ready")
	s.start("sandbox", "--dynamodb", s.db, "--bigtable", bigtable, "--nats", nats, "--s3", free(s.t),
		"--ready-file", ready)
	s.until("the sandbox is ready", func() bool { _, err := os.Stat(ready); return err == nil })
	s.client = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + s.db),
		Credentials: credentials.NewStaticCredentialsProvider("any", "key", ""),
	})
}

// withStream is the stream that the replicator reads.
var withStream = &types.StreamSpecification{
	StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
}

// createTable creates a table and returns its ARN.
func (s *stage) createTable(name string, stream *types.StreamSpecification) string {
	s.t.Helper()
	created, err := s.client.CreateTable(s.t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema:           []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification: stream,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return aws.ToString(created.TableDescription.TableArn)
}

func (s *stage) program(args ...string) *exec.Cmd {
	program := os.Getenv("REPLICATOR")
	if program == "" {
		s.t.Fatal("REPLICATOR names no program; `make page` builds and names one")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=key", "AWS_REGION=us-east-1")
	return cmd
}

// command runs one to its end.
func (s *stage) command(args ...string) {
	s.t.Helper()
	if out, err := s.program(args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// start runs a process until the test ends.
func (s *stage) start(args ...string) *exec.Cmd {
	s.t.Helper()
	return s.startCommand(s.program(args...))
}

func (s *stage) startCommand(cmd *exec.Cmd) *exec.Cmd {
	s.t.Helper()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func (s *stage) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.daemon.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for a condition, at most as long as the test may take.
func (s *stage) until(what string, done func() bool) {
	s.t.Helper()
	for !done() {
		select {
		case <-s.t.Context().Done():
			s.t.Fatalf("never: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// browser starts a Chromium and returns a context of it.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab is an open page.
type tab struct {
	s   *stage
	ctx context.Context
}

// open opens a page in a tab of its own.
func (s *stage) open(browser context.Context, path string) *tab {
	s.t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	s.t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("http://"+s.admin+path)); err != nil {
		s.t.Fatal(err)
	}
	return &tab{s, ctx}
}

// text returns what a JavaScript expression is.
func (p *tab) text(expression string) string {
	p.s.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		p.s.t.Fatal(err)
	}
	return value
}

func (p *tab) title() string { return p.text("document.title") }

// free returns an address that nothing listens on.
func free(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// serveLogin answers every request at the address of the admin server as a proxy does whose session
// has ended.
func (s *stage) serveLogin() *http.Server {
	s.t.Helper()
	ln, err := net.Listen("tcp", s.admin)
	if err != nil {
		s.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!doctype html><title>Log in</title><form></form>"))
	})}
	go func() { _ = server.Serve(ln) }()
	s.t.Cleanup(func() { _ = server.Close() })
	return server
}

// answers reports whether a path of the admin server answers with 200.
func (s *stage) answers(path string) bool {
	reply, err := http.Get("http://" + s.admin + path)
	if err != nil {
		return false
	}
	_ = reply.Body.Close()
	return reply.StatusCode == http.StatusOK
}
