package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
)

// world is a sandbox DynamoDB over real HTTP, and a source that reads it.
type world struct {
	testSource
	*sandbox.World
}

func newWorld(t *testing.T, opts ...func(*Options)) *world {
	t.Helper()
	w := &world{World: sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{
		Seed: 1, Partitions: 3, NoBigtable: true, NoNATS: true,
	}})}
	fast := func(o *Options) { o.ReadsPerShard, o.IdlePoll = 100, 20*time.Millisecond }
	w.testSource = open(t, w.Endpoint(), append([]func(*Options){fast}, opts...)...)
	return w
}

func (w *world) put(t *testing.T, table string, i int) {
	t.Helper()
	if _, err := w.tables.PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: &table, Item: map[string]dbtypes.AttributeValue{
			"pk": &dbtypes.AttributeValueMemberS{Value: fmt.Sprint(i % 50)},
			"n":  &dbtypes.AttributeValueMemberN{Value: fmt.Sprint(i % 3)},
			"v":  &dbtypes.AttributeValueMemberN{Value: fmt.Sprint(i)},
		}}); err != nil {
		t.Error(err)
	}
}

func (w *world) start(info TableInfo, shard string, clock int64) Start {
	return Start{Feed: change.Feed{Stream: info.StreamARN, Shard: shard}, Table: info.Name, Schema: info.Schema,
		Clock: change.Version(clock)}
}

func TestSandboxConforms(t *testing.T) { conform(t, newWorld(t).testSource) }

func TestSandboxConformsWithGzip(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Compress = true })
	w.Faults.Gzip(true)
	conform(t, w.testSource)
}

// lineage reads a whole stream as its owner would: a child begins when its parent is done, with its
// clock.
type lineage struct {
	w          *world
	info       TableInfo
	pool       *Pool
	clock      map[string]int64
	seen       map[string]bool
	deliveries []ledger.Delivery
	versions   map[uint64]int64
	mu         sync.Mutex
}

func (l *lineage) add(sh Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[sh.ID] {
		l.seen[sh.ID] = true
		l.pool.Add(l.w.NewReader(l.w.start(l.info, sh.ID, l.clock[sh.Parent])))
	}
}

func (l *lineage) take(t *testing.T, p *Page) {
	for _, r := range p.Records {
		l.deliveries = append(l.deliveries, ledger.Delivery{
			Table: l.info.Name, Shard: p.Feed.Shard, Seq: string(r.SequenceNumber), Images: ledger.HashImages(r.New, r.Old),
		})
		if change.Version(l.versions[r.KeyHash]) >= r.Version {
			t.Errorf("an item goes from version %d to %d", l.versions[r.KeyHash], r.Version)
		}
		l.versions[r.KeyHash] = int64(r.Version)
	}
	if p.Done {
		l.mu.Lock()
		l.clock[p.Feed.Shard] = int64(p.Clock)
		l.mu.Unlock()
		children, err := l.w.Children(t.Context(), l.info.StreamARN, p.Feed.Shard)
		if err != nil {
			t.Error(err)
		}
		for _, c := range children {
			l.add(c)
		}
	}
}

// Splits, rotations, late children, throttles, cut and reset replies, expired iterators and empty
// pages at once: every change arrives, once, in order per item, with growing versions, its images
// untouched.
func TestEverythingOnceInOrderUnderAllOfIt(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Connections, o.CallTimeout = 4, 2*time.Second })
	info := createTable(t, w.testSource, "Things")
	w.Stream.Faults().HideChildren(200 * time.Millisecond)
	w.Stream.Faults().OpenParents(300 * time.Millisecond)
	w.Stream.Faults().IteratorTTL(100 * time.Millisecond)
	w.Stream.Faults().EmptyPages("", 20)
	for _, r := range []fault.Rule{
		{Effect: fault.Cut, Operation: "GetRecords", Odds: 0.1}, {Effect: fault.Reset, Operation: "GetRecords", Odds: 0.05},
		{Effect: fault.Error, Operation: "GetRecords", Code: "ProvisionedThroughputExceededException", Odds: 0.05},
		{Effect: fault.Error, Operation: "GetShardIterator", Code: "InternalServerError", Odds: 0.1},
		{Effect: fault.Error, Operation: "DescribeStream", Code: "ThrottlingException", Odds: 0.1},
	} {
		if err := w.Faults.Inject(r); err != nil {
			t.Fatal(err)
		}
	}
	const changes = 3000
	l := &lineage{w: w, info: info, pool: w.NewPool(), clock: map[string]int64{}, seen: map[string]bool{},
		versions: map[uint64]int64{}}
	list, err := w.List(t.Context(), info.StreamARN)
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range list.Shards {
		l.add(sh)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errors.New("it takes too long"))
	defer cancel()
	out, ended, wrote := make(chan Event), make(chan error, 1), make(chan bool, 1)
	go func() { ended <- l.pool.Run(ctx, out) }()
	go func() { wrote <- w.churn(t, changes) }()
	for len(l.deliveries) < changes {
		select {
		case e := <-out:
			if e.Err != nil {
				t.Fatal(e.Err)
			}
			l.take(t, e.Page)
			e.Page.Release()
		case err := <-ended:
			t.Fatalf("%d of %d changes: %v", len(l.deliveries), changes, err)
		}
	}
	<-wrote
	cancel()
	<-ended
	if v := w.Ledger.Check(l.deliveries, "Things"); !v.Exact {
		t.Fatalf("%+v", v)
	}
	if n := w.budget.InUse(); n != 0 {
		t.Errorf("%d bytes in use", n)
	}
}

// churn writes changes, and splits and rotates shards between them.
func (w *world) churn(t *testing.T, changes int) bool {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range changes {
		w.put(t, "Things", i)
		if i%500 == 250 {
			shards := w.Stream.OpenShards("Things")
			if _, err := w.Stream.Split(shards[rnd.IntN(len(shards))], 1+rnd.IntN(3)); err != nil {
				t.Error(err)
			}
		}
	}
	return true
}

func TestDisabledStreamIsDrainedToItsLeaves(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Things")
	for i := range 30 {
		w.put(t, "Things", i)
	}
	w.Stream.Rotate("Things")
	for i := range 30 {
		w.put(t, "Things", i+30)
	}
	w.Stream.Disable("Things")
	l, err := w.List(t.Context(), info.StreamARN)
	if err != nil || !l.Disabled() || len(l.Shards) != 6 {
		t.Fatalf("%+v, %v", l, err)
	}
	records := 0
	for _, sh := range l.Shards {
		if !sh.Closed {
			t.Errorf("shard %s is open", sh.ID)
		}
		r := w.NewReader(w.start(info, sh.ID, 0))
		for done := false; !done; {
			p := next(t, r)
			records, done = records+len(p.Records), p.Done
			p.Release()
		}
		r.Close()
		if sh.Leaf {
			if c, err := w.Children(t.Context(), info.StreamARN, sh.ID); len(c) != 0 || err != nil {
				t.Errorf("leaf %s has children %v, %v", sh.ID, c, err)
			}
		}
	}
	if records != 60 {
		t.Errorf("%d records of 60", records)
	}
}

func TestParentTrimmedBeforeItsChildIsRead(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Things")
	parents := w.Stream.OpenShards("Things")
	w.Stream.Rotate("Things")
	w.put(t, "Things", 1)
	w.Stream.Faults().DropParents(true)
	l, err := w.List(t.Context(), info.StreamARN)
	if err != nil || len(l.Shards) != 3 {
		t.Fatalf("%+v, %v", l, err)
	}
	for _, sh := range l.Shards {
		if !sh.Orphan || !slices.Contains(parents, sh.Parent) {
			t.Errorf("%+v", sh)
		}
	}
}

func TestTrimmedMarkOfTheSandbox(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ReadsPerShard = 1000 })
	info := createTable(t, w.testSource, "Things")
	for i := range 60 {
		w.put(t, "Things", i)
	}
	shard := w.Stream.OpenShards("Things")[0]
	r := w.NewReader(w.start(info, shard, 0))
	p := next(t, r)
	first := string(p.Records[0].SequenceNumber)
	p.Release()
	r.Close()
	w.Stream.Trim(time.Now().Add(time.Hour))
	st := w.start(info, shard, 0)
	st.Position.After = change.SequenceNumber(first)
	late := w.NewReader(st)
	defer late.Close()
	_, err := late.Next(t.Context())
	if gap := (*GapError)(nil); !errors.As(err, &gap) || !errors.Is(err, ErrTrimmed) ||
		gap.Position.After != change.SequenceNumber(first) {
		t.Fatalf("%v", err)
	}
}

// A server that sends half a page and then nothing must not hold a reader for ever.
func TestStalledReplyIsReadAgain(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.CallTimeout = 200 * time.Millisecond })
	info := createTable(t, w.testSource, "Things")
	for i := range 20 {
		w.put(t, "Things", i)
	}
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Stall, Operation: "GetRecords", Delay: time.Minute,
		Times: 1}); err != nil {
		t.Fatal(err)
	}
	r := w.NewReader(w.start(info, w.Stream.OpenShards("Things")[0], 0))
	defer r.Close()
	p := next(t, r)
	defer p.Release()
	if len(p.Records) == 0 {
		t.Fatal("no records")
	}
}

// The clock of this machine may be wrong: signing follows the service's, and so does Now.
func TestOwnClockIsWrong(t *testing.T) {
	w := newWorld(t)
	w.Faults.Skew(20 * time.Minute)
	w.Faults.CheckTime(true)
	if _, err := w.tables.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Fatal(err)
	}
	info := createTable(t, w.testSource, "Things")
	r := w.NewReader(w.start(info, w.Stream.OpenShards("Things")[0], 0))
	defer r.Close()
	p, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Release()
	now, _ := w.Now()
	if ahead := time.Until(now.Time()); ahead.Round(time.Minute) != 20*time.Minute {
		t.Fatalf("the service's clock is %v ahead", ahead)
	}
}

func TestTrimmedShardExistsWhileItIsKnown(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Things")
	known, unknown := w.Stream.OpenShards("Things")[0], strings.Repeat("shardId-0", 5)
	for shard, want := range map[string]bool{known: true, unknown: false} {
		got, err := w.Exists(t.Context(), change.Feed{Stream: info.StreamARN, Shard: shard}, known)
		if got != want || err != nil {
			t.Errorf("%s: %v, %v", shard, got, err)
		}
	}
	// Rule 3: a shard whose records are trimmed is one that the service knows. Its children wait
	// for it to be read to its end.
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "GetShardIterator",
		Code: "TrimmedDataAccessException"}); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Exists(t.Context(), change.Feed{Stream: info.StreamARN, Shard: known}, known); !got || err != nil {
		t.Errorf("trimmed %s: %v, %v", known, got, err)
	}
}

// Rule 13: a service that denies a shard which it lists denies every shard, and a single answer may
// be of one server.
func TestShardIsNotGoneByOneAnswer(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Things")
	known, unknown := w.Stream.OpenShards("Things")[0], strings.Repeat("shardId-0", 5)
	for name, c := range map[string]struct {
		shard string
		times int
	}{"one answer": {known, 1}, "all answers": {known, 0}, "all answers, also of a shard that is gone": {unknown, 0}} {
		if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "GetShardIterator", Times: c.times,
			Code: "ResourceNotFoundException"}); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Exists(t.Context(), change.Feed{Stream: info.StreamARN, Shard: c.shard}, known); !got || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		w.Faults.Calm()
	}
}

func TestTimeToLiveAttributeIsFound(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Things")
	if info.TTLAttr != "" || info.TTLError != nil {
		t.Fatalf("%q, %v", info.TTLAttr, info.TTLError)
	}
	if _, err := w.tables.UpdateTimeToLive(t.Context(),
		&dynamodb.UpdateTimeToLiveInput{TableName: &info.Name, TimeToLiveSpecification: &dbtypes.TimeToLiveSpecification{
			AttributeName: aws.String("expires"), Enabled: aws.Bool(true),
		}}); err != nil {
		t.Fatal(err)
	}
	info, err := w.Table(t.Context(), "Things")
	if err != nil || info.TTLAttr != "expires" || info.Date == 0 {
		t.Fatalf("%+v, %v", info, err)
	}
}

// A policy without DescribeTimeToLive must not keep the table from being read.
func TestTimeToLiveDenied(t *testing.T) {
	w := newWorld(t)
	createTable(t, w.testSource, "Things")
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "DescribeTimeToLive",
		Code: "AccessDeniedException"}); err != nil {
		t.Fatal(err)
	}
	info, err := w.Table(t.Context(), "Things")
	if err != nil || Classify(info.TTLError) != failure.Denied {
		t.Fatalf("%v, %v", err, info.TTLError)
	}
}

// Rule 13: one answer that a table does not exist is none; a table that is deleted is gone.
func TestOneNotFoundIsNoDeletedTable(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Things")
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "DescribeTable", Times: 1,
		Code: "ResourceNotFoundException"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Table(t.Context(), "Things"); Classify(err) != failure.Transient {
		t.Errorf("after one answer: %v", err)
	}
	if again, err := w.Table(t.Context(), "Things"); err != nil || again.ID != info.ID {
		t.Errorf("%+v, %v", again, err)
	}
	for op, code := range map[string]string{
		"DescribeTable": "ResourceNotFoundException", "DescribeTimeToLive": "AccessDeniedException",
	} {
		if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: op, Times: 1, Code: code}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Table(t.Context(), "Things"); Classify(err) != failure.Transient {
		t.Errorf("without the permission to confirm it otherwise: %v", err)
	}
	if _, err := w.Table(t.Context(), "Nothings"); Classify(err) != failure.Gone {
		t.Errorf("a table that does not exist: %v", err)
	}
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "DescribeTimeToLive",
		Code: "AccessDeniedException"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Table(t.Context(), "Nothings"); Classify(err) != failure.Gone {
		t.Errorf("a table that does not exist, without that permission: %v", err)
	}
}
