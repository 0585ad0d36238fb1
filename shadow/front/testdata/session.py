# A session of boto3: the variables of the environment lead to DynamoDB.
import os

import boto3
from boto3.dynamodb.types import Binary
from botocore.config import Config
from botocore.exceptions import ClientError

config = Config(retries={"max_attempts": 10, "mode": "standard"})
table = boto3.resource("dynamodb", config=config).Table("Orders")
assert table.get_item(Key={"pk": "a", "sk": "b"})["Item"]["n"] == 1
found = table.query(KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": "large"})
assert len(found["Items"][0]["b"].value) == 300_000
data = os.urandom(380_000)
table.put_item(Item={"pk": "python", "sk": "x", "b": Binary(data)})
assert table.get_item(Key={"pk": "python", "sk": "x"})["Item"]["b"].value == data
try:
    table.put_item(Item={"pk": "a", "sk": "b"}, ConditionExpression="attribute_not_exists(pk)")
    raise SystemExit("the condition held")
except ClientError as e:
    assert e.response["Error"]["Code"] == "ConditionalCheckFailedException", e
try:
    table.query(KeyConditionExpression="nonsense")
    raise SystemExit("the expression was accepted")
except ClientError as e:
    assert e.response["Error"]["Code"] == "ValidationException", e
print("ok")
