import java.util.Map;
import software.amazon.awssdk.http.SdkHttpClient;
import software.amazon.awssdk.http.apache.ApacheHttpClient;
import software.amazon.awssdk.http.async.SdkAsyncHttpClient;
import software.amazon.awssdk.http.crt.AwsCrtAsyncHttpClient;
import software.amazon.awssdk.http.crt.AwsCrtHttpClient;
import software.amazon.awssdk.http.nio.netty.NettyNioAsyncHttpClient;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.*;

/** Reads and writes with each HTTP client of the SDK; the environment names endpoint and proxy. */
public class Session {
  static Map<String, AttributeValue> key(String pk, String sk) {
    return Map.of("pk", AttributeValue.fromS(pk), "sk", AttributeValue.fromS(sk));
  }

  static void check(boolean holds, Object got) {
    if (!holds) throw new IllegalStateException(String.valueOf(got));
  }

  static void blocking(SdkHttpClient http) {
    try (DynamoDbClient c = DynamoDbClient.builder().httpClient(http).build()) {
      for (int i = 0; i < 3; i++) {
        var got = c.getItem(r -> r.tableName("Orders").key(key("a", "b")));
        check(got.item().get("n").n().equals("1"), got);
      }
      var large = c.query(r -> r.tableName("Orders").keyConditionExpression("pk = :p")
          .expressionAttributeValues(Map.of(":p", AttributeValue.fromS("large"))));
      check(large.items().get(0).get("b").b().asByteArray().length == 300_000, "a large item");
      try {
        c.putItem(r -> r.tableName("Orders").item(key("a", "b")).conditionExpression("attribute_not_exists(pk)"));
        check(false, "the condition holds");
      } catch (ConditionalCheckFailedException e) {
        // as it must be
      }
      c.batchGetItem(r -> r.requestItems(Map.of("Orders", KeysAndAttributes.builder().keys(key("a", "b")).build())));
      c.transactWriteItems(r -> r.transactItems(TransactWriteItem.builder()
          .put(p -> p.tableName("Orders").item(key("t", "x"))).build()));
    }
  }

  static void async(SdkAsyncHttpClient http) throws Exception {
    try (DynamoDbAsyncClient c = DynamoDbAsyncClient.builder().httpClient(http).build()) {
      for (int i = 0; i < 3; i++) {
        var got = c.getItem(r -> r.tableName("Orders").key(key("a", "b"))).get();
        check(got.item().get("n").n().equals("1"), got);
      }
    }
  }

  public static void main(String[] args) throws Exception {
    blocking(ApacheHttpClient.create());
    blocking(UrlConnectionHttpClient.create());
    blocking(AwsCrtHttpClient.create());
    async(NettyNioAsyncHttpClient.create());
    async(AwsCrtAsyncHttpClient.create());
    System.out.println("ok");
  }
}
