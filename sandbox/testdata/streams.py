"""A session with DynamoDB Streams through boto3: python3 streams.py ENDPOINT"""
import json
import sys
import time
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint = sys.argv[1]
args = dict(endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b",
            config=Config(retries={"max_attempts": 1, "mode": "standard"}))
db, streams = boto3.client("dynamodb", **args), boto3.client("dynamodbstreams", **args)


def command(name, **kw):
    req = urllib.request.Request(f"{endpoint}/_sandbox/{name}", json.dumps(kw).encode(), method="POST")
    return json.load(urllib.request.urlopen(req)).get("result")


def refused(code, call, **kw):
    try:
        call(**kw)
    except ClientError as e:
        assert e.response["Error"]["Code"] == code, e
        return
    raise AssertionError(f"not refused: {kw}")


def create(name, view):
    out = db.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}, {"AttributeName": "c", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "c", "KeyType": "RANGE"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": view})
    db.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    d = db.describe_table(TableName=name)["Table"]
    assert d["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": view}
    assert d["LatestStreamArn"].startswith(d["TableArn"] + "/stream/") and d["LatestStreamArn"].endswith(d["LatestStreamLabel"])
    return d["LatestStreamArn"]


def shards(arn, **kw):
    out, last = [], {}
    while True:
        d = streams.describe_stream(StreamArn=arn, **kw, **last)["StreamDescription"]
        out += d["Shards"]
        if "LastEvaluatedShardId" not in d:
            return out
        last = {"ExclusiveStartShardId": d["LastEvaluatedShardId"]}


def read(arn, kind="TRIM_HORIZON"):
    out = []
    for s in shards(arn):
        it = streams.get_shard_iterator(StreamArn=arn, ShardId=s["ShardId"], ShardIteratorType=kind)["ShardIterator"]
        while it:
            page = streams.get_records(ShardIterator=it)
            out += page["Records"]
            it = page.get("NextShardIterator")
            if not page["Records"] and "EndingSequenceNumber" not in s["SequenceNumberRange"]:
                break
    return out


key = {"p": {"S": "a"}, "c": {"S": "b"}}
arn = create("Both", "NEW_AND_OLD_IMAGES")
d = streams.describe_stream(StreamArn=arn)["StreamDescription"]
assert d["StreamStatus"] == "ENABLED" and d["TableName"] == "Both" and d["StreamViewType"] == "NEW_AND_OLD_IMAGES"
assert [k["KeyType"] for k in d["KeySchema"]] == ["HASH", "RANGE"] and d["CreationRequestDateTime"]
assert len(d["Shards"]) >= 1 and all(28 <= len(s["ShardId"]) <= 65 for s in d["Shards"])

# operations and images
db.put_item(TableName="Both", Item={**key, "x": {"N": "1"}})
db.put_item(TableName="Both", Item={**key, "x": {"N": "1.0"}})  # equal by value: no record
db.update_item(TableName="Both", Key=key, UpdateExpression="SET y = :y", ExpressionAttributeValues={":y": {"SS": ["q", "r"]}})
db.update_item(TableName="Both", Key=key, UpdateExpression="SET y = :y", ExpressionAttributeValues={":y": {"SS": ["r", "q"]}})
db.delete_item(TableName="Both", Key=key)
db.delete_item(TableName="Both", Key=key)
db.update_item(TableName="Both", Key={"p": {"S": "only"}, "c": {"S": "key"}})
got = read(arn)
assert sorted(r["eventName"] for r in got) == ["INSERT", "INSERT", "MODIFY", "REMOVE"], got
by = {r["eventName"]: r["dynamodb"] for r in got if r["dynamodb"]["Keys"] == key}
assert "OldImage" not in by["INSERT"] and by["INSERT"]["NewImage"]["x"] == {"N": "1"}
assert by["MODIFY"]["OldImage"] == by["INSERT"]["NewImage"] and by["MODIFY"]["NewImage"]["y"] == {"SS": ["q", "r"]}
assert "NewImage" not in by["REMOVE"] and by["REMOVE"]["OldImage"] == by["MODIFY"]["NewImage"]
for r in got:
    assert r["eventVersion"] == "1.1" and r["eventSource"] == "aws:dynamodb" and r["awsRegion"] == "us-east-1" and len(r["eventID"]) == 32
    s = r["dynamodb"]
    assert 21 <= len(s["SequenceNumber"]) <= 40 and s["SizeBytes"] > 0 and s["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert s["ApproximateCreationDateTime"].microsecond == 0 and "userIdentity" not in r

# batches and transactions: one record per item that changed
db.batch_write_item(RequestItems={"Both": [{"PutRequest": {"Item": {"p": {"S": "batch"}, "c": {"S": str(i)}}}} for i in range(5)]})
db.transact_write_items(TransactItems=[{"Put": {"TableName": "Both", "Item": {"p": {"S": "tx"}, "c": {"S": str(i)}}}} for i in range(3)])
assert len(read(arn)) == len(got) + 8

# view types
for view, fields in {"KEYS_ONLY": set(), "NEW_IMAGE": {"NewImage"}, "OLD_IMAGE": {"OldImage"}}.items():
    other = create(view, view)
    for n in "1", "2":
        db.put_item(TableName=view, Item={**key, "x": {"N": n}})
    last = read(other)[-1]["dynamodb"]
    assert {f for f in last if f.endswith("Image")} == fields and last["Keys"] == key, last

# iterators
sh = shards(arn)[0]
at = dict(StreamArn=arn, ShardId=sh["ShardId"])
start = sh["SequenceNumberRange"]["StartingSequenceNumber"]
for kw in ({"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": start}, {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": start},
           {"ShardIteratorType": "LATEST"}):
    assert streams.get_shard_iterator(**at, **kw)["ShardIterator"]
for kind in "TRIM_HORIZON", "LATEST":
    refused("ValidationException", streams.get_shard_iterator, **at, ShardIteratorType=kind, SequenceNumber=start)
refused("ValidationException", streams.list_streams, ExclusiveStartStreamArn="x" * 50)
refused("ValidationException", streams.get_shard_iterator, **at, ShardIteratorType="panda")
refused("ValidationException", streams.get_shard_iterator, **at, ShardIteratorType="AT_SEQUENCE_NUMBER")
refused("ValidationException", streams.get_shard_iterator, **at, ShardIteratorType="AT_SEQUENCE_NUMBER", SequenceNumber="word" * 6)
refused("ResourceNotFoundException", streams.get_shard_iterator, StreamArn=arn, ShardId="shardId-" + "0" * 29, ShardIteratorType="LATEST")
refused("ResourceNotFoundException", streams.describe_stream, StreamArn=arn[:-1] + ("1" if arn[-1] != "1" else "2"))
refused("ValidationException", streams.describe_stream, StreamArn="x" * 50)
refused("ValidationException", streams.get_records, ShardIterator="jibberish")
it = streams.get_shard_iterator(**at, ShardIteratorType="LATEST")["ShardIterator"]
refused("ValidationException", streams.get_records, ShardIterator=it, Limit=1001)
assert shards(arn, Limit=1) == shards(arn)
assert streams.describe_stream(StreamArn=arn, ExclusiveStartShardId="z" * 30)["StreamDescription"]["Shards"] == []

# lineage
split = command("split", table="Both", open=0, n=3)
kids = [s for s in shards(arn) if s.get("ParentShardId") == split["parent"]]
assert [k["ShardId"] for k in kids] == sorted(split["children"])
assert "EndingSequenceNumber" in next(s for s in shards(arn) if s["ShardId"] == split["parent"])["SequenceNumberRange"]

# off and on again
before = len(read(arn))
db.update_table(TableName="Both", StreamSpecification={"StreamEnabled": False})
assert streams.describe_stream(StreamArn=arn)["StreamDescription"]["StreamStatus"] == "DISABLED"
assert all("EndingSequenceNumber" in s["SequenceNumberRange"] for s in shards(arn)) and len(read(arn)) == before
for _ in range(50):
    if db.describe_table(TableName="Both")["Table"]["TableStatus"] == "ACTIVE":
        break
    time.sleep(0.1)
db.update_table(TableName="Both", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
new = db.describe_table(TableName="Both")["Table"]["LatestStreamArn"]
assert new != arn and {s["StreamArn"] for s in streams.list_streams(TableName="Both")["Streams"]} == {arn, new}
page = streams.list_streams(Limit=1)
assert len(page["Streams"]) == 1 and page["LastEvaluatedStreamArn"] == page["Streams"][0]["StreamArn"]

# what time to live deletes carries the service's identity, in names that boto3 knows
ttl = create("Expiring", "NEW_AND_OLD_IMAGES")
db.update_time_to_live(TableName="Expiring", TimeToLiveSpecification={"AttributeName": "gone", "Enabled": True})
db.put_item(TableName="Expiring", Item={**key, "gone": {"N": str(int(time.time()) - 60)}})
command("expire")
removed = [r for r in read(ttl) if r["eventName"] == "REMOVE"]
assert [r.get("userIdentity") for r in removed] == [{"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}], removed

# a deleted table's stream stays readable
db.delete_table(TableName="KEYS_ONLY")
print("ok")
