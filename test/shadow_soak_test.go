package test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// shadowSoak is an application that reads and writes through a front, while something happens to
// what the engine needs.
type shadowSoak struct {
	*stage
	s   *shadowed
	rnd *rand.Rand
}

// body draws a request of the application.
func (x *shadowSoak) body() (operation, body string) {
	pk, sk := fmt.Sprint("hat", x.rnd.IntN(4)), fmt.Sprint("fedora", x.rnd.IntN(8))
	key := fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk)
	query := fmt.Sprintf(`{"TableName":"Orders","KeyConditionExpression":"pk = :p","ScanIndexForward":%t,`+
		`"ExpressionAttributeValues":{":p":{"S":%q}}`, x.rnd.IntN(2) == 0, pk)
	switch x.rnd.IntN(9) {
	case 0, 1:
		return "PutItem", fmt.Sprintf(`{"TableName":"Orders","Item":%s,"n":{"N":"%d"}}}`,
			strings.TrimSuffix(key, "}"), x.rnd.IntN(100))
	case 2:
		return "DeleteItem", fmt.Sprintf(`{"TableName":"Orders","Key":%s}`, key)
	case 3:
		return "Query", query + "}"
	case 4:
		return "Query", query + fmt.Sprintf(`,"Limit":%d}`, 1+x.rnd.IntN(4))
	case 5:
		return "BatchGetItem", fmt.Sprintf(`{"RequestItems":{"Orders":{"Keys":[%s,%s]}}}`, key,
			strings.Replace(key, "fedora", "bowler", 1))
	case 6:
		return "TransactGetItems", fmt.Sprintf(`{"TransactItems":[{"Get":{"TableName":"Orders","Key":%s}}]}`, key)
	}
	return "GetItem", fmt.Sprintf(`{"TableName":"Orders","Key":%s}`, key)
}

// use makes some requests, of which none fails.
func (x *shadowSoak) use(n int) {
	x.t.Helper()
	for range n {
		operation, body := x.body()
		if got := x.s.post(operation, body); !strings.HasPrefix(got, "200 ") {
			x.t.Fatalf("%s: %s", operation, got)
		}
	}
}

// counted returns how many requests engines have counted.
func (x *shadowSoak) counted() (n float64) {
	page := regexp.MustCompile(`The report so far is at (http://[^ ]+)\.\n`).FindStringSubmatch(x.s.errs.String())
	if page == nil {
		return 0
	}
	reply, err := http.Get(page[1] + "/metrics")
	if err != nil {
		x.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(reply.Body)
	if reply.StatusCode != http.StatusOK || strings.Contains(string(text), "fedora") {
		x.t.Fatalf("metrics: %s", text)
	}
	_, value, _ := strings.Cut(string(text), `tailrace_shadow_requests_total{result="taken"} `)
	_, _ = fmt.Sscan(value, &n)
	return n
}

// useUntilCounted uses the table until an engine counts what it does.
func (x *shadowSoak) useUntilCounted() {
	x.t.Helper()
	before := x.counted()
	x.Until("an engine counts", func() bool {
		x.use(10)
		return x.counted() >= before+50
	})
}

// happen lets something happen, uses the table, and takes it back.
func (x *shadowSoak) happen(what int) {
	x.t.Helper()
	switch what {
	case 0:
		_ = syscall.Kill(x.s.engine(), syscall.SIGKILL)
		x.use(20)
	case 1:
		engine := x.s.engine()
		_ = syscall.Kill(engine, syscall.SIGSTOP)
		x.use(60)
		_ = syscall.Kill(engine, syscall.SIGCONT)
	case 2:
		x.toBigtable.cut()
		x.use(40)
		x.toBigtable.restore()
	case 3:
		x.toNATS.cut()
		x.use(40)
		x.toNATS.restore()
	case 4:
		x.d.kill()
		x.use(40)
		x.d = x.run()
		x.s.daemon = x.d
	case 5:
		x.Stream.Rotate("Orders")
		x.use(20)
	}
	x.useUntilCounted()
}

// Attack 108: the engine is killed and frozen, Bigtable and NATS are away, the daemon is
// killed, and shards rotate, while an application reads and writes. No request of it fails, and no
// read is a false alarm. -chaos.seeds gives more histories.
func TestShadowThroughOutages(t *testing.T) {
	long(t, "40 s")
	if runtime.GOOS != "linux" {
		t.Skip("the engine is found through /proc")
	}
	t.Parallel()
	for _, seed := range seeds()[:max(1, len(seeds())/20)] {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			x := &shadowSoak{stage: newStage(t, "NATS away"), rnd: rand.New(rand.NewPCG(seed, 47))}
			x.s = x.startShadow("--json", "--admin", "127.0.0.1:0")
			x.s.daemon = x.d
			x.useUntilCounted()
			for _, what := range x.rnd.Perm(6) {
				x.happen(what)
			}
			x.d.settle("Orders")
			r := x.s.end()
			totals, _ := r.Totals()
			t.Logf("%s\n%+v", r.Sentence(), r.Passed)
			if totals.Mismatches != 0 || totals.Replayed == 0 {
				t.Errorf("%+v: %s", totals, x.s.errs.String())
			}
			for i := range r.Counts.Patterns {
				c := &r.Counts.Patterns[i]
				if c.Replay != nil && c.Keys != c.Replay.Replayed+c.Replay.Left() {
					t.Errorf("%s: %d keys, %+v", c.Pattern.Text(), c.Keys, c.Replay)
				}
			}
		})
	}
}
