package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int) types.AttributeValue     { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }

func ptr[T any](v T) *T { return &v }

type attrs = map[string]types.AttributeValue

// TestGoSession is a session through the Go SDK: its signing, its checksums, its
// waiters and paginators, its typed errors.
func TestGoSession(t *testing.T) {
	r, ctx := newRig(t), context.Background()
	c := r.client()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := c.CreateTable(ctx, &dynamodb.CreateTableInput{TableName: ptr("shop"),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: ptr("p"), AttributeType: "S"},
			{AttributeName: ptr("c"), AttributeType: "N"}},
		KeySchema: []types.KeySchemaElement{{AttributeName: ptr("p"), KeyType: "HASH"},
			{AttributeName: ptr("c"), KeyType: "RANGE"}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: ptr(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages}})
	must(err)
	must(dynamodb.NewTableExistsWaiter(c).Wait(ctx, &dynamodb.DescribeTableInput{TableName: ptr("shop")}, 10*time.Second))
	for i := range 30 {
		_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: ptr("shop"),
			Item: attrs{"p": text("x"), "c": num(i), "v": text("é")}})
		must(err)
	}
	_, err = c.PutItem(ctx, &dynamodb.PutItemInput{TableName: ptr("shop"), Item: attrs{"p": text("x"), "c": num(3)},
		ConditionExpression: ptr("attribute_not_exists(p)"), ReturnValuesOnConditionCheckFailure: "ALL_OLD"})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || len(failed.Item) != 3 {
		t.Errorf("got %v", err)
	}
	pages, seen := dynamodb.NewQueryPaginator(c, &dynamodb.QueryInput{TableName: ptr("shop"), Limit: ptr(int32(7)),
		KeyConditionExpression: ptr("p = :p AND c < :c"), ExpressionAttributeValues: attrs{":p": text("x"),
			":c": num(20)}}), 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		must(err)
		for _, item := range page.Items {
			if got := item["c"].(*types.AttributeValueMemberN).Value; got != fmt.Sprint(seen) {
				t.Fatalf("item %s in place %d", got, seen)
			}
			seen++
		}
	}
	if seen != 20 {
		t.Errorf("%d items", seen)
	}
	_, err = c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Delete: &types.Delete{TableName: ptr("shop"), Key: attrs{"p": text("x"), "c": num(1)}}},
		{ConditionCheck: &types.ConditionCheck{TableName: ptr("shop"), Key: attrs{"p": text("x"), "c": num(2)},
			ConditionExpression: ptr("v = p")}}}})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || *cancelled.CancellationReasons[1].Code != "ConditionalCheckFailed" {
		t.Errorf("got %v", err)
	}
	if all := readStream(t, r.url, *made.TableDescription.LatestStreamArn); len(all) != 30 {
		t.Errorf("%d records", len(all))
	}
	_, err = c.GetItem(ctx, &dynamodb.GetItemInput{TableName: ptr("none"), Key: attrs{"p": text("x")}})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("got %v", err)
	}
}

// TestSDKReadsTheIdentityOfTTLDeletes reads the record of an expired item as a consumer does: the
// SDK drops members of the identity that are not spelled as in its model.
func TestSDKReadsTheIdentityOfTTLDeletes(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.do("UpdateTimeToLive", `{'TableName':'ttt','TimeToLiveSpecification':{'AttributeName':'ttl','Enabled':true}}`)
	r.put("ttt", fmt.Sprintf(`{'p':{'S':'a'},'ttl':{'N':'%d'}}`, r.clock.Now().Add(-time.Minute).Unix()))
	if n := r.ExpireNow(r.clock.Now()); n != 1 {
		t.Fatalf("%d items expired, want 1", n)
	}
	arn, _, _, _ := r.stream.Describe("ttt")
	all := readStream(t, r.url, arn)
	if len(all) != 2 {
		t.Fatalf("%d records, want 2", len(all))
	}
	want := &streamtypes.Identity{PrincipalId: ptr("dynamodb.amazonaws.com"), Type: ptr("Service")}
	if diff := cmp.Diff(want, all[1].UserIdentity, cmpopts.IgnoreUnexported(streamtypes.Identity{})); diff != "" {
		t.Errorf("identity of a delete by time to live: %s", diff)
	}
	if id := all[0].UserIdentity; id != nil {
		t.Errorf("a user's put has the identity %v", id)
	}
}

// TestShardsFollowTheCapacity creates tables as users do, and counts the shards of their streams.
func TestShardsFollowTheCapacity(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		billing string
		shards  int
	}{
		"ondemand": {`'BillingMode':'PAY_PER_REQUEST'`, 4},
		"small":    {`'ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':5}`, 1},
		"large":    {`'ProvisionedThroughput':{'ReadCapacityUnits':3000,'WriteCapacityUnits':2500}`, 4},
		"absurd":   {`'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1000000000000}`, 1000},
	} {
		r.do("CreateTable", `{'TableName':'`+name+`','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],
			'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],`+c.billing+`,'StreamSpecification':{'StreamEnabled':true,
			'StreamViewType':'KEYS_ONLY'}}`)
		if n := len(r.stream.OpenShards(name)); n != c.shards {
			t.Errorf("%s: %d shards, want %d", name, n, c.shards)
		}
		r.do("UpdateTable", `{'TableName':'`+name+`','StreamSpecification':{'StreamEnabled':false}}`)
		r.do("UpdateTable", `{'TableName':'`+name+`',
			'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'KEYS_ONLY'}}`)
		if n := len(r.stream.OpenShards(name)); n != c.shards {
			t.Errorf("%s, enabled again: %d shards, want %d", name, n, c.shards)
		}
	}
}

// TestEndpointDiscoveryStaysInTheSandbox uses a client that asks where to send its requests.
func TestEndpointDiscoveryStaysInTheSandbox(t *testing.T) {
	r, ctx := newRig(t), context.Background()
	r.table("ttt", "")
	c := dynamodb.New(r.client().Options(), func(o *dynamodb.Options) {
		o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryEnabled
	})
	found, err := c.DescribeEndpoints(ctx, &dynamodb.DescribeEndpointsInput{})
	if err != nil || len(found.Endpoints) != 1 || *found.Endpoints[0].Address != r.url {
		t.Errorf("%+v, %v, want %s", found, err, r.url)
	}
	if _, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: ptr("ttt"), Item: attrs{"p": text("a")}}); err != nil {
		t.Error(err)
	}
	r.want(r.item("ttt", "a"), `{'p':{'S':'a'}}`)
}

// readStream reads a stream's records through the SDK.
func readStream(t *testing.T, url, arn string) (all []streamtypes.Record) {
	t.Helper()
	ctx := context.Background()
	c := dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	d, err := c.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range d.StreamDescription.Shards {
		it, err := c.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: shard.ShardId,
			ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
		if err != nil {
			t.Fatal(err)
		}
		page, err := c.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Records...)
	}
	return all
}
