package page

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const shopConfig = `
pipeline: shop
source: {region: us-east-1, endpoint: "http://%s"}
bigtable: {project: acme, instance: main, endpoint: "%s"}
queue: {url: "nats://%s", max_bytes: 128MiB, replay_window: 5m}
admin: {listen: "%s"}
scratch: ./scratch
tables:
- {source: Orders, target: orders}
- {source: Carts, target: carts}
- {source: Sessions, target: sessions}
- {source: Customers, target: customers, mapping: typed.yaml}
- {source: Invoices, target: invoices, mapping: typed.yaml, on_reject: halt}
- {source: "Product*", tag: {replicate: bigtable}, target: "{table}", backfill: {from: scan, read_units: 60}}
`

// typed refuses an item whose amount is no whole number.
const typed = `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: all
  match: {id: "{id}"}
  row: "{id}"
  cells: [{attr: name, to: "d:name"}, {attr: amount, to: "d:amount", as: int64}]
`

// shop is a stage with the tables of a shop. Connections to Bigtable and NATS can be cut.
type shop struct {
	*stage
	bigtable, nats *relay
}

// trade is how many changes a second a table has on average.
var trade = []struct {
	table, item string
	rate        float64
}{
	{"Orders", "order", 18}, {"Carts", "cart", 14}, {"Sessions", "session", 10}, {"Invoices", "invoice", 3},
	{"Customers", "customer", 2},
}

// newShop starts a replicator and writers, which write until the test ends.
func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{stage: &stage{t: t, dir: t.TempDir(), admin: free(t), db: free(t)}}
	bigtable, nats := free(t), free(t)
	s.bigtable, s.nats = newRelay(t, bigtable), newRelay(t, nats)
	s.file("typed.yaml", typed)
	s.configure(shopConfig, s.db, s.bigtable.addr, s.nats.addr, s.admin)
	s.startSandbox(bigtable, nats)
	s.console("bigtable_latency", `{"delay":"4ms","jitter":"8ms"}`)
	for _, sells := range trade {
		s.createTable(sells.table, withStream)
	}
	s.command("schema", "--apply")
	s.daemon = s.runAs("tailrace-0")
	ctx, stop := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	writers.Go(func() { s.write(ctx) })
	t.Cleanup(func() { stop(); writers.Wait() })
	return s
}

// runAs starts the replicator on a host of another name: the page shows it as the owner.
func (s *shop) runAs(host string) *exec.Cmd {
	s.t.Helper()
	cmd := s.program("run")
	shell := []string{"--map-root-user", "--uts", "sh", "-c", `hostname "$0" && exec "$@"`, host, cmd.Path, "run"}
	named := exec.Command("unshare", shell...)
	named.Dir, named.Env = cmd.Dir, cmd.Env
	return s.startCommand(named)
}

// write writes changes until ctx ends, at rates that go up and down.
func (s *shop) write(ctx context.Context) {
	const each = 250 * time.Millisecond
	began, due := time.Now(), make([]float64, len(trade))
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		minutes := time.Since(began).Minutes()
		for i, sells := range trade {
			slow, fast := math.Sin(2*math.Pi*minutes/37+float64(i)), math.Sin(2*math.Pi*minutes/9+2*float64(i))
			due[i] += each.Seconds() * sells.rate * (1 + 0.45*slow + 0.25*fast + 0.4*(rand.Float64()-0.5))
			for ; due[i] >= 1; due[i]-- {
				id := fmt.Sprintf("%s-%05d", sells.item, rand.IntN(4000))
				_ = s.put(ctx, sells.table, id, fmt.Sprint(rand.IntN(90_000)), 200) // a sandbox under a fault may refuse it
			}
		}
	}
}

// put writes an item of about so many bytes.
func (s *shop) put(ctx context.Context, table, id, amount string, size int) error {
	note := make([]byte, size)
	for i := range note {
		note[i] = byte(rand.Uint32())
	}
	item := map[string]types.AttributeValue{
		"id":     &types.AttributeValueMemberS{Value: id},
		"name":   &types.AttributeValueMemberS{Value: "name of " + id},
		"amount": &types.AttributeValueMemberN{Value: amount},
		"note":   &types.AttributeValueMemberB{Value: note},
	}
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
	return err
}

func (s *shop) mustPut(table, id, amount string, size int) {
	s.t.Helper()
	if err := s.put(s.t.Context(), table, id, amount, size); err != nil {
		s.t.Fatal(err)
	}
}

// console carries out a command of the sandbox.
func (s *shop) console(name, args string) {
	s.t.Helper()
	reply, err := http.Post("http://"+s.db+"/_sandbox/"+name, "application/json", bytes.NewReader([]byte(args)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(reply.Body)
		s.t.Fatalf("%s %s: %s", name, args, text)
	}
}

// relay is a TCP proxy that can be cut: then it refuses connections, as the address of a server
// that is down does.
type relay struct {
	t        *testing.T
	addr, to string

	mu    sync.Mutex
	ln    net.Listener // nil: cut
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{t: t, addr: free(t), to: to}
	r.restore()
	t.Cleanup(r.cut)
	return r
}

func (r *relay) restore() {
	r.t.Helper()
	ln, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ln = ln
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			if out, err := net.Dial("tcp", r.to); err != nil || !r.join(in, out) {
				_ = in.Close()
			}
		}
	}()
}

// join forwards between two connections, unless the relay was cut meanwhile.
func (r *relay) join(in, out net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ln == nil {
		_ = out.Close()
		return false
	}
	r.conns = append(r.conns, in, out)
	go forward(in, out)
	go forward(out, in)
	return true
}

func forward(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ln != nil {
		_ = r.ln.Close()
	}
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.ln, r.conns = nil, nil
}
