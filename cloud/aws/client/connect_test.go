package client

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestConnectTrusts calls an AWS behind a certificate authority that only
// AWS_CA_BUNDLE names, as behind a proxy that looks into TLS.
func TestConnectTrusts(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(`{"QueueUrl":"https://queue"}`))
	}))
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CA_BUNDLE": bundle, "AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	services, err := Connect(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	queue := "q"
	out, err := services.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil || *out.QueueUrl != "https://queue" {
		t.Errorf("%v, %v", out, err)
	}
}
