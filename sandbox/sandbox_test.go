package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/nats-io/nats.go"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
)

// rig is a sandbox with the SDK's clients.
type rig struct {
	*sandbox.Sandbox
	t       *testing.T
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
}

func newRig(t *testing.T, o sandbox.Options) *rig {
	t.Helper()
	r := &rig{Sandbox: sandbox.Test(t, o), t: t}
	cfg := aws.Config{
		Region: sandbox.Region, BaseEndpoint: aws.String(r.Endpoint()), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("sandbox", "sandbox", ""),
	}
	r.db, r.streams = dynamodb.NewFromConfig(cfg), dynamodbstreams.NewFromConfig(cfg)
	return r
}

func (r *rig) createTable(name string) (arn string) {
	r.t.Helper()
	out, err := r.db.CreateTable(r.t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"),
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return *out.TableDescription.LatestStreamArn
}

func (r *rig) put(table, pk string, n int) error {
	_, err := r.db.PutItem(r.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pk}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
	}})
	return err
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) do(name, args string) any {
	r.t.Helper()
	out, err := r.Console.Do(r.t.Context(), name, []byte(args))
	r.must(err)
	return out
}

// shards lists a stream, parents first.
func (r *rig) shards(arn string) (all []streamtypes.Shard) {
	r.t.Helper()
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}
	for {
		out, err := r.streams.DescribeStream(r.t.Context(), in)
		r.must(err)
		all = append(all, out.StreamDescription.Shards...)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return all
		}
	}
}

// records reads every shard of a stream with the SDK, parents first.
func (r *rig) records(arn string) (all []streamtypes.Record) {
	r.t.Helper()
	r.read(arn, func(_ string, rec streamtypes.Record) { all = append(all, rec) })
	return all
}

// deliveries is records as the ledger checks them.
func (r *rig) deliveries(table, arn string) (all []ledger.Delivery) {
	r.t.Helper()
	r.read(arn, func(shard string, rec streamtypes.Record) {
		all = append(all, ledger.Delivery{Table: table, Shard: shard, Seq: *rec.Dynamodb.SequenceNumber})
	})
	return all
}

// read calls take with every record of a stream, parents first.
func (r *rig) read(arn string, take func(shard string, rec streamtypes.Record)) {
	r.t.Helper()
	for _, sh := range r.shards(arn) {
		it, err := r.streams.GetShardIterator(r.t.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &arn, ShardId: sh.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		})
		r.must(err)
		for next := it.ShardIterator; next != nil; {
			page, err := r.streams.GetRecords(r.t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
			if errors.Is(err, net.ErrClosed) {
				continue // the client closes its own connection now and then: https://github.com/aws/aws-sdk-go-v2/issues/2737
			}
			r.must(err)
			for _, rec := range page.Records {
				take(*sh.ShardId, rec)
			}
			if next = page.NextShardIterator; len(page.Records) == 0 && sh.SequenceNumberRange.EndingSequenceNumber == nil {
				break
			}
		}
	}
}

func TestSDKReadsWhatWasCommitted(t *testing.T) {
	r := newRig(t, sandbox.Options{Seed: 3, NoBigtable: true, NoNATS: true})
	arn := r.createTable("Orders")
	for n := range 300 {
		r.must(r.put("Orders", fmt.Sprint("item", n%20), n))
		switch n {
		case 100:
			r.do("split", `{"table":"Orders","open":-1,"n":3}`)
		case 200:
			r.do("rotate", `{"table":"Orders"}`)
		}
	}
	got := r.deliveries("Orders", arn)
	if v := r.Ledger.Check(got); !v.Exact || v.Committed != 300 {
		t.Errorf("verdict %+v", v)
	}
	got[7], got[8] = got[8], got[7]
	if v := r.Ledger.Check(append(got[:50], got[51:]...)); v.Exact || v.Missing != 1 {
		t.Errorf("verdict on wrong deliveries %+v", v)
	}
}

func TestThreeServersAndTheirEnvironment(t *testing.T) {
	r := newRig(t, sandbox.Options{})
	env := map[string]string{}
	for _, line := range r.Env() {
		k, v, _ := strings.Cut(line, "=")
		env[k] = v
	}
	conn, err := nats.Connect(env["NATS_URL"])
	r.must(err)
	conn.Close()
	r.must(bigtableTable(t.Context(), env["BIGTABLE_EMULATOR_HOST"]))
	if env["AWS_ENDPOINT_URL"] != r.Endpoint() || env["AWS_DEFAULT_REGION"] == "" {
		t.Errorf("environment %v", env)
	}
}

func bigtableTable(ctx context.Context, addr string) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	admin, err := bigtable.NewAdminClient(ctx, "local", "local", option.WithGRPCConn(conn))
	if err != nil {
		return err
	}
	return admin.CreateTable(ctx, "orders")
}

func TestEverythingSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	first, err := sandbox.Start(sandbox.Options{Dir: dir, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Sandbox: first, t: t}
	cfg := aws.Config{
		Region: sandbox.Region, BaseEndpoint: aws.String(first.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider("sandbox", "sandbox", ""),
	}
	r.db, r.streams = dynamodb.NewFromConfig(cfg), dynamodbstreams.NewFromConfig(cfg)
	arn := r.createTable("Orders")
	for n := range 50 {
		r.must(r.put("Orders", fmt.Sprint(n%7), n))
	}
	r.do("rotate", "{}")
	r.must(bigtableTable(t.Context(), first.Bigtable.Addr()))
	r.must(first.Close())

	again := newRig(t, sandbox.Options{Dir: dir, Seed: 2})
	for n := range 50 {
		r.must(again.put("Orders", fmt.Sprint(n%7), 100+n))
	}
	if v := again.Ledger.Check(again.deliveries("Orders", arn)); !v.Exact || v.Committed != 100 {
		t.Errorf("verdict %+v", v)
	}
	if tables := again.Bigtable.Tables(); len(tables) != 1 {
		t.Errorf("bigtable tables %v", tables)
	}
}

func TestFaultsOnTheWire(t *testing.T) {
	r := newRig(t, sandbox.Options{NoBigtable: true, NoNATS: true})
	arn := r.createTable("Orders")
	for name, c := range map[string]struct{ command, args, want string }{
		"error": {"error", `{"operation":"PutItem","code":"InternalServerError","times":1}`, "StatusCode: 500"},
		"throttle": {"throttle", `{"operation":"PutItem","code":"ProvisionedThroughputExceededException","times":1}`,
			"ProvisionedThroughputExceededException"},
		"expired": {"expired", `{"operation":"PutItem","times":1}`, "ExpiredTokenException"},
		"cut":     {"cut", `{"operation":"PutItem","times":1}`, "EOF"},
		"reset":   {"reset", `{"operation":"PutItem","times":1}`, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			r.do(c.command, c.args)
			if err := r.put("Orders", name, 1); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("put: %v, want %q", err, c.want)
			}
			if err := r.put("Orders", name, 2); err != nil {
				t.Errorf("next put: %v", err)
			}
		})
	}
	if all, _ := r.Ledger.Count("Orders"); all != 7 { // cut and reset came after the commit
		t.Errorf("%d commits, want 7", all)
	}
	for _, command := range []string{"stall", "gzip"} {
		r.do(command, map[string]string{"gzip": `{}`, "stall": `{"for":"10ms"}`}[command])
		if v := r.Ledger.Check(r.deliveries("Orders", arn)); !v.Exact {
			t.Errorf("%s: verdict %+v", command, v)
		}
	}
	r.do("calm", "")
	r.do("check_time", "{}")
	r.do("skew", `{"by":"-20m"}`)
	if err := r.put("Orders", "skewed", 1); err == nil || !strings.Contains(err.Error(), "InvalidSignature") {
		t.Errorf("put with a skewed clock: %v", err)
	}
	if err := r.put("Orders", "skewed", 1); err != nil { // the SDK has learned the server's time
		t.Errorf("second put with a skewed clock: %v", err)
	}
}

func TestTTLDeletesComeWithTheClock(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	r := newRig(t, sandbox.Options{Clock: c, NoBigtable: true, NoNATS: true})
	arn := r.createTable("Orders")
	_, err := r.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("Orders"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("n"), Enabled: aws.Bool(true)},
	})
	r.must(err)
	r.must(r.put("Orders", "gone", int(c.Now().Unix())+60))
	r.must(r.put("Orders", "kept", int(c.Now().Unix())+3600))
	c.Advance(5 * time.Minute)
	sandbox.Watch{}.Until(t, "the third change is committed", func() bool {
		all, _ := r.Ledger.Count("Orders")
		return all == 3
	})
	found := false
	r.Ledger.Changes("Orders", func(ch ledger.Change) bool {
		found = found || ch.TTL && ch.Op == "REMOVE" && strings.Contains(ch.Item, "gone")
		return true
	})
	if !found {
		t.Error("no TTL delete in the ledger")
	}
	if v := r.Ledger.Check(r.deliveries("Orders", arn)); !v.Exact {
		t.Errorf("verdict %+v", v)
	}
}

func TestRunWritesItsReadyFileAndFollowsATimeline(t *testing.T) {
	dir := t.TempDir()
	ready, timeline := filepath.Join(dir, "ready"), filepath.Join(dir, "timeline.yaml")
	script := "- {at: 0s, do: list_page, n: 2}\n- {at: 1ms, do: latency, operation: PutItem, delay: 1ms}\n- {at: 2ms, " +
		"every: 1ms, count: 3, do: advance, by: 1h}\n"
	if err := os.WriteFile(timeline, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	const free = "127.0.0.1:0"
	c := clock.New()
	begun := time.Now()
	go func() {
		done <- sandbox.Run(ctx, sandbox.Options{DynamoDB: free, Bigtable: free, NATS: free, ReadyFile: ready,
			Timeline: timeline, Clock: c})
	}()
	r := &rig{t: t}
	sandbox.Watch{}.Until(t, "the ready file is written and the timeline has run", func() bool {
		_, err := os.Stat(ready)
		return err == nil && c.Now().Sub(begun) > 3*time.Hour
	})
	text, err := os.ReadFile(ready)
	r.must(err)
	if !strings.Contains(string(text), "export AWS_ENDPOINT_URL=http://127.0.0.1:") {
		t.Errorf("ready file %s", text)
	}
	cancel()
	r.must(<-done)
	if _, err := os.Stat(ready); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ready file is left behind: %v", err)
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	r := newRig(t, sandbox.Options{NoNATS: true})
	for _, o := range []sandbox.Options{
		{DynamoDB: strings.TrimPrefix(r.Endpoint(), "http://")}, {Bigtable: r.Bigtable.Addr()},
	} {
		if s, err := sandbox.Start(o); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("started %v: %v", s, err)
		}
	}
}
