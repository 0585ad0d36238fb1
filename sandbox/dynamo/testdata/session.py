"""A session as a Python user has it: every operation of the sandbox through boto3.

Usage: session.py ENDPOINT. Ends with status 0 and "ok" when all behaves as on AWS.
"""
import decimal
import sys
import time

import boto3
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.config import Config
from botocore.exceptions import ClientError

D = decimal.Decimal
ENDPOINT = sys.argv[1]
ARGS = dict(endpoint_url=ENDPOINT, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b",
            config=Config(retries={"max_attempts": 1}))
ddb = boto3.resource("dynamodb", **ARGS)
client = boto3.client("dynamodb", **ARGS)
streams = boto3.client("dynamodbstreams", **ARGS)


def refused(code, text, call, *args, **kw):
    try:
        call(*args, **kw)
    except ClientError as e:
        got = e.response["Error"]
        assert got["Code"] == code and text in got["Message"], got
        return e.response
    raise AssertionError("not refused: %s" % code)


def eq(got, want):
    assert got == want, "\ngot  %r\nwant %r" % (got, want)


def tables():
    t = ddb.create_table(
        TableName="shop", BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}, {"AttributeName": "c", "AttributeType": "N"},
                              {"AttributeName": "g", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "c", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[{"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                                 "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        Tags=[{"Key": "team", "Value": "x"}])
    t.wait_until_exists()
    d = client.describe_table(TableName="shop")["Table"]
    eq(d["TableStatus"], "ACTIVE")
    eq(d["TableArn"].split(":")[-1], "table/shop")
    assert d["LatestStreamArn"].endswith(d["LatestStreamLabel"])
    eq(client.describe_table(TableName=d["TableArn"])["Table"]["TableId"], d["TableId"])
    client.tag_resource(ResourceArn=d["TableArn"], Tags=[{"Key": "team", "Value": "y"}, {"Key": "a", "Value": "b"}])
    client.untag_resource(ResourceArn=d["TableArn"], TagKeys=["a"])
    eq(client.list_tags_of_resource(ResourceArn=d["TableArn"])["Tags"], [{"Key": "team", "Value": "y"}])
    eq(client.describe_continuous_backups(TableName="shop")["ContinuousBackupsDescription"]["ContinuousBackupsStatus"], "ENABLED")
    client.update_time_to_live(TableName="shop", TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})
    eq(client.describe_time_to_live(TableName="shop")["TimeToLiveDescription"], {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"})
    refused("ValidationException", "already", client.update_time_to_live, TableName="shop",
            TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})
    refused("ValidationException", "different AttributeName", client.update_time_to_live, TableName="shop",
            TimeToLiveSpecification={"AttributeName": "x", "Enabled": True})
    refused("ResourceInUseException", "already exists", client.create_table, TableName="shop", BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}], KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}])
    refused("ValidationException", "already", client.update_table, TableName="shop",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    assert "shop" in client.list_tables()["TableNames"]
    return t


def items(t):
    full = {"p": "x", "c": D("1"), "s": "é\U0001F600\"\\\n", "n": D("3.14000"), "b": Binary(b"\0\xff"), "t": True, "nil": None, "e": "",
            "l": [D(1), "a", {"m": [None]}], "m": {"k": {"z": D("1e-130")}}, "ss": {"b", "a"}, "ns": {D(1), D(2)}, "bs": {Binary(b"1"), Binary(b"2")}}
    t.put_item(Item=full)
    eq(t.get_item(Key={"p": "x", "c": 1}, ConsistentRead=True)["Item"], full)
    eq(t.get_item(Key={"p": "x", "c": 2}).get("Item"), None)
    # numbers come back plain, however long that makes them: only the client without conversion to Decimal reads those
    t.put_item(Item={"p": "big", "c": 1, "n": D("9.9999999999999999999999999999999999999E+125")})
    big = {"p": {"S": "big"}, "c": {"N": "1"}}
    eq(client.get_item(TableName="shop", Key=big)["Item"]["n"], {"N": "9" * 38 + "0" * 88})
    client.delete_item(TableName="shop", Key=big)
    eq(t.get_item(Key={"p": "x", "c": 1}, ProjectionExpression="l[2].m, #k", ExpressionAttributeNames={"#k": "n"})["Item"],
       {"l": [{"m": [None]}], "n": D("3.14")})
    old = t.put_item(Item={"p": "x", "c": 1, "n": 5}, ReturnValues="ALL_OLD", ReturnConsumedCapacity="TOTAL")
    eq(old["Attributes"], full)
    eq(old["ConsumedCapacity"], {"TableName": "shop", "CapacityUnits": 1.0})
    refused("ConditionalCheckFailedException", "The conditional request failed", t.put_item, Item={"p": "x", "c": 1},
            ConditionExpression=Attr("p").not_exists())
    e = refused("ConditionalCheckFailedException", "failed", client.put_item, TableName="shop", Item={"p": {"S": "x"}, "c": {"N": "1"}},
                ConditionExpression="n > :v", ExpressionAttributeValues={":v": {"N": "7"}}, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    eq(e["Item"]["n"], {"N": "5"})
    k = {"p": "x", "c": 1}
    up = lambda expr, rv="ALL_NEW", **v: t.update_item(Key=k, UpdateExpression=expr, ReturnValues=rv,
                                                       **({"ExpressionAttributeValues": {":" + a: b for a, b in v.items()}} if v else {}))
    eq(up("SET n = n + :i, m = :m", i=2, m={"a": {"b": [1, 2]}})["Attributes"], {"p": "x", "c": 1, "n": 7, "m": {"a": {"b": [1, 2]}}})
    eq(up("SET m.a.b[1] = :v", "UPDATED_NEW", v=9)["Attributes"], {"m": {"a": {"b": [9]}}})
    eq(up("SET n = :v", "UPDATED_OLD", v=8)["Attributes"], {"n": 7})
    eq(up("REMOVE n", "UPDATED_NEW").get("Attributes"), None)
    eq(up("ADD s :s", s={"q", "r"})["Attributes"]["s"], {"q", "r"})
    eq(up("DELETE s :s", "ALL_OLD", s={"q", "r"})["Attributes"]["s"], {"q", "r"})
    refused("ValidationException", "part of the key", up, "SET c = :v", v=1)
    eq(t.update_item(Key={"p": "fresh", "c": 0})["ResponseMetadata"]["HTTPStatusCode"], 200)
    eq(t.get_item(Key={"p": "fresh", "c": 0})["Item"], {"p": "fresh", "c": 0})
    eq(t.delete_item(Key={"p": "fresh", "c": 0}, ReturnValues="ALL_OLD")["Attributes"], {"p": "fresh", "c": 0})
    t.delete_item(Key={"p": "fresh", "c": 0})
    # legacy parameters
    t.update_item(Key=k, AttributeUpdates={"n": {"Action": "ADD", "Value": 3}, "m": {"Action": "DELETE"}, "z": {"Action": "PUT", "Value": "q"}},
                  Expected={"n": {"Exists": False}})
    eq(t.get_item(Key=k, AttributesToGet=["n", "z"])["Item"], {"n": 3, "z": "q"})
    refused("ConditionalCheckFailedException", "", t.delete_item, Key=k, Expected={"n": {"ComparisonOperator": "LT", "AttributeValueList": [3]}})
    t.delete_item(Key=k, Expected={"n": {"Value": 3}})


def reads(t):
    with t.batch_writer() as b:
        for i in range(60):
            b.put_item(Item={"p": "part", "c": D(i) - 30, "v": "x" * 20, "g": "g%d" % (i % 3)})
        for i in range(40):
            b.put_item(Item={"p": "q%d" % i, "c": 0})
    q = lambda **kw: t.query(**kw)
    eq([i["c"] for i in q(KeyConditionExpression=Key("p").eq("part"))["Items"]], [D(i) - 30 for i in range(60)])
    r = q(KeyConditionExpression=Key("p").eq("part") & Key("c").between(-2, 2), ScanIndexForward=False)
    eq([i["c"] for i in r["Items"]], [2, 1, 0, -1, -2])
    for op, want in (("lt", [-30, -29]), ("lte", [-30, -29, -28])):
        eq([i["c"] for i in q(KeyConditionExpression=Key("p").eq("part") & getattr(Key("c"), op)(-28))["Items"]], want)
    eq(q(KeyConditionExpression=Key("p").eq("part") & Key("c").gt(27), Select="COUNT")["Count"], 2)
    r = q(KeyConditionExpression=Key("p").eq("part"), FilterExpression=Attr("g").eq("g1"), Limit=10, ReturnConsumedCapacity="INDEXES")
    eq((r["Count"], r["ScannedCount"], r["LastEvaluatedKey"]), (3, 10, {"p": "part", "c": -21}))
    eq(r["ConsumedCapacity"]["Table"], {"CapacityUnits": 0.5})
    for back in (True, False):
        got, start = [], {}
        while True:
            r = q(KeyConditionExpression=Key("p").eq("part"), Limit=7, ScanIndexForward=not back, **start)
            got += [i["c"] for i in r["Items"]]
            if "LastEvaluatedKey" not in r:
                break
            start = {"ExclusiveStartKey": r["LastEvaluatedKey"]}
        eq(got, [D(i) - 30 for i in range(60)][::-1 if back else 1])
    seen = []
    for s in range(5):
        start = {}
        while True:
            r = t.scan(Segment=s, TotalSegments=5, Limit=9, **start)
            seen += [(i["p"], i["c"]) for i in r["Items"]]
            if "LastEvaluatedKey" not in r:
                break
            start = {"ExclusiveStartKey": r["LastEvaluatedKey"]}
    eq((len(seen), len(set(seen))), (100, 100))
    eq(t.scan(FilterExpression=Attr("v").size().gte(20) & Attr("g").is_in(["g0", "g2"]), Select="COUNT")["Count"], 40)
    eq(len(q(IndexName="by-g", KeyConditionExpression=Key("g").eq("g2"))["Items"]), 20)
    r = client.batch_get_item(RequestItems={"shop": {"Keys": [{"p": {"S": "q%d" % i}, "c": {"N": "0"}} for i in range(30, 50)]}})
    eq((len(r["Responses"]["shop"]), r["UnprocessedKeys"]), (10, {}))
    for i in range(6):
        t.put_item(Item={"p": "big", "c": i, "v": "x" * 300000})
    r = q(KeyConditionExpression=Key("p").eq("big"))
    eq((r["Count"], r["LastEvaluatedKey"]), (3, {"p": "big", "c": 2}))


def transactions():
    put = lambda p, **kw: {"Put": dict(TableName="shop", Item={"p": {"S": p}, "c": {"N": "0"}, "v": {"S": "1"}}, **kw)}
    client.transact_write_items(TransactItems=[put("t1"), put("t2")], ClientRequestToken="tok")
    client.transact_write_items(TransactItems=[put("t1"), put("t2")], ClientRequestToken="tok")
    refused("IdempotentParameterMismatchException", "", client.transact_write_items, TransactItems=[put("t3")], ClientRequestToken="tok")
    e = refused("TransactionCanceledException", "[None, ConditionalCheckFailed]", client.transact_write_items,
                TransactItems=[put("t3"), put("t1", ConditionExpression="attribute_not_exists(p)", ReturnValuesOnConditionCheckFailure="ALL_OLD")])
    eq([r["Code"] for r in e["CancellationReasons"]], ["None", "ConditionalCheckFailed"])
    eq(e["CancellationReasons"][1]["Item"]["v"], {"S": "1"})
    key = lambda p: {"TableName": "shop", "Key": {"p": {"S": p}, "c": {"N": "0"}}}
    r = client.transact_get_items(TransactItems=[{"Get": key("t1")}, {"Get": key("t3")}, {"Get": dict(key("t2"), ProjectionExpression="v")}])
    eq([i.get("Item") for i in r["Responses"]], [{"p": {"S": "t1"}, "c": {"N": "0"}, "v": {"S": "1"}}, None, {"v": {"S": "1"}}])
    client.transact_write_items(TransactItems=[
        {"Update": dict(key("t1"), UpdateExpression="SET v = :v", ExpressionAttributeValues={":v": {"S": "2"}})},
        {"Delete": key("t2")}, {"ConditionCheck": dict(key("t9"), ConditionExpression="attribute_not_exists(p)")}])
    eq(client.get_item(**key("t1"))["Item"]["v"], {"S": "2"})


def stream_records():
    """Reads the whole stream and plays it into a dictionary: it must equal the table."""
    arn = streams.list_streams(TableName="shop")["Streams"][0]["StreamArn"]
    play, last = {}, {}
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        it = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        while True:
            page = streams.get_records(ShardIterator=it)
            for r in page["Records"]:
                d = r["dynamodb"]
                key = (d["Keys"]["p"]["S"], d["Keys"]["c"]["N"])
                eq(d.get("OldImage"), play.get(key))
                assert int(d["SequenceNumber"]) > last.get(shard["ShardId"], 0)
                last[shard["ShardId"]] = int(d["SequenceNumber"])
                play.pop(key, None)
                if "NewImage" in d:
                    play[key] = d["NewImage"]
                eq(r["eventName"], {(True, False): "INSERT", (True, True): "MODIFY", (False, True): "REMOVE"}["NewImage" in d, "OldImage" in d])
            it = page.get("NextShardIterator")
            if not it or not page["Records"]:
                break
    table = {}
    for page in client.get_paginator("scan").paginate(TableName="shop"):
        for i in page["Items"]:
            table[i["p"]["S"], i["c"]["N"]] = i
    eq(play, table)


def end():
    r = client.update_table(TableName="shop", StreamSpecification={"StreamEnabled": False})
    eq(r["TableDescription"]["TableStatus"], "UPDATING")
    eq(client.describe_table(TableName="shop")["Table"].get("StreamSpecification"), None)
    eq(client.delete_table(TableName="shop")["TableDescription"]["TableStatus"], "DELETING")
    client.get_waiter("table_not_exists").wait(TableName="shop", WaiterConfig={"Delay": 1, "MaxAttempts": 5})
    refused("ResourceNotFoundException", "Requested resource not found", client.get_item, TableName="shop", Key={"p": {"S": "x"}})
    refused("ValidationException", "not supported", client.execute_statement, Statement="SELECT * FROM shop")


t = tables()
items(t)
reads(t)
transactions()
stream_records()
end()
print("ok")
