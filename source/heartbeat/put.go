package heartbeat

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
)

// Put returns the write of a heartbeat with a partition key, as Keys.Nth gives it, at a time. It
// never overwrites an item that is not a heartbeat. With never set its condition is never true: the
// reply shows whether it is permitted.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutItem.html
func Put(
	table string, schema change.KeySchema, key string, at change.Millis, never bool,
) (*dynamodb.PutItemInput, error) {
	condition := "attribute_not_exists(#pk) OR attribute_exists(#at)"
	if never {
		condition = "attribute_exists(#pk) AND attribute_not_exists(#pk) AND attribute_exists(#at)"
	}
	pk, err := keyValue(schema.Partition, key)
	if err != nil {
		return nil, err
	}
	item := map[string]types.AttributeValue{
		schema.Partition.Name: pk, Attr: &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(at), 10)},
	}
	if sort := schema.Sort; sort != nil {
		fixed := map[byte]string{'S': "heartbeat", 'N': "0", 'B': "aGVhcnRiZWF0"}
		if item[sort.Name], err = keyValue(*sort, fixed[sort.Type]); err != nil {
			return nil, err
		}
	}
	return &dynamodb.PutItemInput{
		TableName: aws.String(table), Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: map[string]string{"#pk": schema.Partition.Name, "#at": Attr},
	}, nil
}

// keyValue returns a key attribute in the SDK's form; binaries are given in base64.
func keyValue(a change.KeyAttr, text string) (types.AttributeValue, error) {
	switch a.Type {
	case 'S':
		return &types.AttributeValueMemberS{Value: text}, nil
	case 'N':
		return &types.AttributeValueMemberN{Value: text}, nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", a.Name, err)
	}
	return &types.AttributeValueMemberB{Value: b}, nil
}
