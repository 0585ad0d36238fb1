// Package request reads requests to DynamoDB: the shape of each operation, its expressions and
// legacy parameters, and the consumed capacity of its reply.
package request

import (
	"regexp"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// rule sets a constraint of a shape.
type rule func(*wire.Shape)

// shape returns a shape with constraints. The functions below return shapes of one kind, or rules.
func shape(kind wire.ShapeKind, name string, rules []rule) *wire.Shape {
	s := &wire.Shape{Kind: kind, Name: name}
	for _, r := range rules {
		r(s)
	}
	return s
}

func text(name string, rules ...rule) *wire.Shape    { return shape(wire.Text, name, rules) }
func boolean(name string, rules ...rule) *wire.Shape { return shape(wire.Boolean, name, rules) }
func integer(name string, rules ...rule) *wire.Shape { return shape(wire.Integer, name, rules) }

func long(name string, rules ...rule) *wire.Shape {
	s := shape(wire.Integer, name, rules)
	s.Java = "Long"
	return s
}

func structure(name, java string, fields ...*wire.Shape) *wire.Shape {
	return &wire.Shape{Kind: wire.Struct, Name: name, Java: java, Fields: fields}
}

func list(name string, elem *wire.Shape, rules ...rule) *wire.Shape {
	s := shape(wire.List, name, rules)
	s.Elem = elem
	return s
}

func mapping(name, java string, elem *wire.Shape, rules ...rule) *wire.Shape {
	s := shape(wire.Map, name, rules)
	s.Java, s.Elem = java, elem
	return s
}

func values(name string, rules ...rule) *wire.Shape {
	return mapping(name, "AttributeValue", &wire.Shape{Kind: wire.Value}, rules...)
}

func required(s *wire.Shape) { s.Required = true }
func notNull(s *wire.Shape)  { s.NotNull = true }
func notEmpty(s *wire.Shape) { s.NotEmpty = true }
func terse(s *wire.Shape)    { s.Terse = true }

func with(s *wire.Shape, rules ...rule) *wire.Shape {
	for _, r := range rules {
		r(s)
	}
	return s
}

func enum(all ...string) rule        { return func(s *wire.Shape) { s.Enum = all } }
func length(least, most int) rule    { return func(s *wire.Shape) { s.MinLen, s.MaxLen = least, most } }
func keyLength(least, most int) rule { return func(s *wire.Shape) { s.KeyLen = [2]int{least, most} } }
func atLeast(n int64) rule           { return func(s *wire.Shape) { s.Min, s.HasMin = n, true } }
func atMost(n int64) rule            { return func(s *wire.Shape) { s.Max = n } }
func matches(re *regexp.Regexp) rule { return func(s *wire.Shape) { s.Pattern = re } }
func attributeNames(name string) *wire.Shape {
	return mapping(name, "java.lang.String", text(""))
}

// Parameters and structures that several operations share.
var (
	bucketRule  = regexp.MustCompile(`^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$`)
	ownerRule   = regexp.MustCompile(`^[0-9]{12}$`)
	nameRule    = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)
	tableName   = text("TableName", notNull, notEmpty, matches(nameRule), length(3, 255))
	adminName   = text("TableName", required, matches(nameRule))
	createName  = text("TableName", required, notEmpty, matches(nameRule), length(3, 255))
	indexName   = text("IndexName", matches(nameRule), length(3, 255))
	consumed    = text("ReturnConsumedCapacity", enum("INDEXES", "TOTAL", "NONE"))
	metrics     = text("ReturnItemCollectionMetrics", enum("SIZE", "NONE"))
	returns     = text("ReturnValues", enum("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"))
	onFailure   = text("ReturnValuesOnConditionCheckFailure", enum("ALL_OLD", "NONE"))
	selects     = text("Select", enum("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"))
	logical     = text("ConditionalOperator", enum("OR", "AND"))
	toGet       = list("AttributesToGet", text(""), length(1, 255))
	names       = attributeNames("ExpressionAttributeNames")
	valuesParam = values("ExpressionAttributeValues")
	comparisons = enum("IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH",
		"GE", "CONTAINS")
	valueList = list("AttributeValueList", &wire.Shape{Kind: wire.Value})
	expected  = mapping("Expected", "ExpectedAttributeValue", structure("", "ExpectedAttributeValue",
		valueList, text("ComparisonOperator", comparisons), boolean("Exists"), &wire.Shape{Kind: wire.Value, Name: "Value"}))
	throughput = structure("ProvisionedThroughput", "ProvisionedThroughput",
		long("WriteCapacityUnits", notNull, atLeast(1)), long("ReadCapacityUnits", notNull, atLeast(1)))
	projection = structure("Projection", "Projection",
		text("ProjectionType", enum("ALL", "INCLUDE", "KEYS_ONLY")),
		list("NonKeyAttributes", text("", length(1, 255)), length(1, 20)))
	keyElement = structure("", "KeySchemaElement",
		text("AttributeName", notNull, length(1, 255)), text("KeyType", notNull, enum("HASH", "RANGE")))
	keySchema  = list("KeySchema", keyElement, notNull, length(1, 2))
	globalKeys = list("KeySchema", keyElement, notNull, length(1, 0)) // of a global index: up to four of each type
	streams    = structure("StreamSpecification", "StreamSpecification", boolean("StreamEnabled", notNull),
		text("StreamViewType", enum("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY")))
	tags        = list("Tags", structure("", "Tag", text("Key"), text("Value"))) // table.ReadTags checks their texts
	resourceARN = text("ResourceArn", length(1, 1283))
)

func conditions(name string) *wire.Shape {
	return mapping(name, "Condition", structure("", "Condition", valueList,
		text("ComparisonOperator", notNull, comparisons)))
}

func index(name, java string, keys *wire.Shape, more ...*wire.Shape) *wire.Shape {
	fields := append([]*wire.Shape{with(text("IndexName", matches(nameRule), length(3, 255)), notNull), keys,
		with(structure("Projection", "Projection", projection.Fields...), notNull)}, more...)
	return structure(name, java, fields...)
}

func requestOf(fields ...*wire.Shape) *wire.Shape {
	return &wire.Shape{Kind: wire.Struct, Fields: fields}
}

// The shapes of the operations' requests. Their fields are in the order in which the service
// reports violations.
var (
	PutItem = requestOf(consumed, tableName, values("Item", notNull), logical, expected, returns, metrics, onFailure,
		text("ConditionExpression"), valuesParam, names)
	DeleteItem = requestOf(consumed, tableName, values("Key", notNull), logical, expected, returns, metrics, onFailure,
		text("ConditionExpression"), valuesParam, names)
	UpdateItem = requestOf(consumed, tableName, metrics, returns, values("Key", notNull), logical, expected, onFailure,
		mapping("AttributeUpdates", "AttributeValueUpdate", structure("", "AttributeValueUpdate",
			text("Action", enum("ADD", "PUT", "DELETE")), &wire.Shape{Kind: wire.Value, Name: "Value"})),
		text("ConditionExpression"), text("UpdateExpression"), valuesParam, names)
	GetItem = requestOf(consumed, tableName, values("Key", notNull), toGet, boolean("ConsistentRead"),
		text("ProjectionExpression"), names)
	Query = requestOf(selects, indexName, consumed, conditions("QueryFilter"), tableName, logical, toGet,
		integer("Limit", atLeast(1), terse), conditions("KeyConditions"), values("ExclusiveStartKey"),
		boolean("ConsistentRead"), boolean("ScanIndexForward"), text("KeyConditionExpression"),
		text("FilterExpression"), text("ProjectionExpression"), valuesParam, names)
	Scan = requestOf(selects, indexName, integer("TotalSegments", atLeast(1), atMost(1000000)), consumed, tableName,
		logical,
		conditions("ScanFilter"), integer("Segment", atLeast(0), atMost(999999)), integer("Limit", atLeast(1)), toGet,
		values("ExclusiveStartKey"), boolean("ConsistentRead"), text("FilterExpression"),
		text("ProjectionExpression"), valuesParam, names)
	BatchWriteItem = requestOf(consumed, metrics, mapping("RequestItems",
		"java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>",
		list("", structure("", "WriteRequest",
			structure("DeleteRequest", "DeleteRequest", values("Key", notNull)),
			structure("PutRequest", "PutRequest", values("Item", notNull)))),
		notNull, keyLength(3, 255)))
	BatchGetItem = requestOf(consumed, mapping("RequestItems", "KeysAndAttributes",
		structure("", "KeysAndAttributes", list("Keys", values(""), notNull, length(1, 100), terse), toGet,
			boolean("ConsistentRead"), text("ProjectionExpression"), names),
		notNull, keyLength(3, 255)))
	TransactWriteItems = requestOf(consumed, metrics, text("ClientRequestToken", length(1, 36)),
		list("TransactItems", structure("", "TransactWriteItem",
			structure("ConditionCheck", "ConditionCheck", values("Key", notNull), tableName,
				text("ConditionExpression", notNull), names, valuesParam, onFailure),
			structure("Put", "Put", values("Item", notNull), tableName, text("ConditionExpression"), names, valuesParam,
				onFailure),
			structure("Delete", "Delete", values("Key", notNull), tableName, text("ConditionExpression"), names, valuesParam,
				onFailure),
			structure("Update", "Update", values("Key", notNull), text("UpdateExpression", notNull), tableName,
				text("ConditionExpression"), names, valuesParam, onFailure)),
			notNull, length(1, 100)))
	TransactGetItems = requestOf(consumed, list("TransactItems", structure("", "TransactGetItem",
		with(structure("Get", "Get", values("Key", notNull), tableName, text("ProjectionExpression"), names), notNull)),
		notNull, length(1, 100)))

	CreateTable = requestOf(list("AttributeDefinitions", structure("", "AttributeDefinition",
		text("AttributeName", notNull, length(1, 255)), text("AttributeType", notNull, enum("B", "N", "S"))), notNull),
		createName, text("BillingMode", enum("PROVISIONED", "PAY_PER_REQUEST")), throughput, keySchema,
		list("LocalSecondaryIndexes", index("", "LocalSecondaryIndex", keySchema)),
		list("GlobalSecondaryIndexes", index("", "GlobalSecondaryIndex", globalKeys, throughput)),
		streams, tags, boolean("DeletionProtectionEnabled"), text("TableClass",
			enum("STANDARD", "STANDARD_INFREQUENT_ACCESS")))
	UpdateTable = requestOf(adminName, throughput, text("BillingMode", enum("PROVISIONED", "PAY_PER_REQUEST")),
		list("AttributeDefinitions", structure("", "AttributeDefinition",
			text("AttributeName", notNull, length(1, 255)), text("AttributeType", notNull, enum("B", "N", "S")))),
		list("GlobalSecondaryIndexUpdates", structure("", "GlobalSecondaryIndexUpdate",
			structure("Update", "UpdateGlobalSecondaryIndexAction", with(text("IndexName", matches(nameRule), length(3, 255)),
				notNull),
				throughput),
			index("Create", "CreateGlobalSecondaryIndexAction", globalKeys, throughput),
			structure("Delete", "DeleteGlobalSecondaryIndexAction", with(text("IndexName", matches(nameRule), length(3, 255)),
				notNull)))),
		streams, boolean("DeletionProtectionEnabled"), text("TableClass", enum("STANDARD", "STANDARD_INFREQUENT_ACCESS")))
	// OfItemTable names a table, for operations that check TableName as operations on items do.
	OfItemTable = requestOf(tableName)
	// OfTable names a table, for operations on tables.
	OfTable    = requestOf(adminName)
	ListTables = requestOf(integer("Limit", atLeast(1), atMost(100)),
		text("ExclusiveStartTableName", matches(nameRule), length(3, 255)))
	UpdateTimeToLive = requestOf(tableName, with(structure("TimeToLiveSpecification", "TimeToLiveSpecification",
		text("AttributeName", notNull, length(1, 255)), boolean("Enabled", notNull)), notNull))
	UpdateContinuousBackups = requestOf(tableName, with(structure("PointInTimeRecoverySpecification",
		"PointInTimeRecoverySpecification",
		boolean("PointInTimeRecoveryEnabled", notNull), integer("RecoveryPeriodInDays", atLeast(1), atMost(35))), notNull))
	// The shapes of exports have no timestamps: those may be numbers of any form.
	ExportTable = requestOf(text("TableArn", notNull, length(1, 1024)), text("ClientToken"),
		text("S3Bucket", notNull, matches(bucketRule), length(0, 255)), text("S3BucketOwner", matches(ownerRule)),
		text("S3Prefix", length(0, 1024)), text("S3SseAlgorithm", enum("AES256", "KMS")),
		text("S3SseKmsKeyId", length(1, 2048)), text("ExportFormat", enum("DYNAMODB_JSON", "ION")),
		text("ExportType", enum("FULL_EXPORT", "INCREMENTAL_EXPORT")),
		structure("IncrementalExportSpecification", "IncrementalExportSpecification",
			text("ExportViewType", enum("NEW_IMAGE", "NEW_AND_OLD_IMAGES"))),
		structure("FilterSpecification", "FilterSpecification", text("KeyConditionExpression"),
			text("FilterExpression"), text("ProjectionExpression"), valuesParam, names))
	DescribeExport = requestOf(text("ExportArn", notNull, length(37, 1024)))
	ListExports    = requestOf(text("TableArn", length(1, 1024)), integer("MaxResults", atLeast(1), atMost(25)),
		text("NextToken"))
	TagResource        = requestOf(resourceARN, tags)
	UntagResource      = requestOf(resourceARN, list("TagKeys", text("")))
	ListTagsOfResource = requestOf(resourceARN, text("NextToken"))
	// Anything has no constraints.
	Anything = requestOf()
)
