// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
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
	services, err := Connect(context.Background(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	queue := "q"
	out, err := services.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil || *out.QueueUrl != "https://queue" {
		t.Errorf("%v, %v", out, err)
	}
}

// TestConnectHasCredentialsWhileItMayNotChange: a replica that does not lead reads,
// with the role of its service account or by Pod Identity.
func TestConnectHasCredentialsWhileItMayNotChange(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := cmp.Or(r.FormValue("Action"), r.URL.Path)
		asked = append(asked, action)
		answers := map[string]string{
			"AssumeRoleWithWebIdentity": `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>` +
				`<AccessKeyId>id</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>` +
				`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
			"/agent":          `{"AccessKeyId":"id","SecretAccessKey":"secret","Token":"t","Expiration":"2100-01-01T00:00:00Z"}`,
			"DescribeSubnets": `<DescribeSubnetsResponse></DescribeSubnetsResponse>`,
		}
		_, _ = w.Write([]byte(answers[action]))
	}))
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, environment := range map[string]map[string]string{
		"AssumeRoleWithWebIdentity": {"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": token},
		"/agent":                    {"AWS_CONTAINER_CREDENTIALS_FULL_URI": server.URL + "/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token},
	} {
		t.Run(from, func(t *testing.T) {
			asked = nil
			for name, value := range map[string]string{
				"AWS_ENDPOINT_URL": server.URL, "AWS_ENDPOINT_URL_STS": server.URL, "AWS_REGION": "us-east-1",
				"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
			} {
				t.Setenv(name, value)
			}
			for name, value := range environment {
				t.Setenv(name, value)
			}
			follows := errors.New("another leads")
			services, err := Connect(t.Context(), "test", &fence{why: follows})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := services.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
				t.Errorf("read: %v", err)
			}
			if _, err := services.EC2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1"}}); !errors.Is(err, follows) {
				t.Errorf("terminate: %v, want %v", err, follows)
			}
			if want := []string{from, "DescribeSubnets"}; !slices.Equal(asked, want) {
				t.Errorf("asked for %v, want %v", asked, want)
			}
		})
	}
}
