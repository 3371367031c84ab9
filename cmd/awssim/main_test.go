// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"karpenter/cloud/aws/client"
)

// start runs the program until the test ends, and returns its URL.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, args, in, t.Output())
		_ = in.CloseWithError(err)
		done <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "ready url=")
	if !ok {
		t.Fatalf("it said %q", line)
	}
	return url
}

// TestControllersTalkToItAsToAWS: with nothing but the environment that a
// controller gets.
func TestControllersTalkToItAsToAWS(t *testing.T) {
	url := start(t, "--cluster-name", "demo", "--kubernetes-version", "1.34", "--region", "eu-west-1")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	} {
		t.Setenv(name, value)
	}
	services, err := client.Connect(t.Context(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := services.EKS.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
	if err != nil || *cluster.Cluster.Version != "1.34" {
		t.Errorf("%+v, %v", cluster, err)
	}
	image, err := services.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id")})
	if err != nil || !strings.HasPrefix(*image.Parameter.Value, "ami-") {
		t.Errorf("%+v, %v", image, err)
	}
	if _, err := services.EC2.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)}); !client.WouldSucceed(err) {
		t.Errorf("a dry run: %v", err)
	}
	types := 0
	for pages := ec2.NewDescribeInstanceTypesPaginator(services.EC2, &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100)}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		types += len(page.InstanceTypes)
	}
	if types < 1000 {
		t.Errorf("%d instance types", types)
	}
	queue, err := services.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("demo")})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := services.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl}); err != nil || len(out.Messages) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestControlEndpoints(t *testing.T) {
	url := start(t) + controlPath
	post := func(deed string) (int, string) {
		answer, err := http.Post(url+deed, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	for deed, want := range map[string]string{
		"lose?instance=i-0": "lose: ", "lose": "parameter instance is missing", "stock?type=&zone=&capacity-type=spot&left=0": "",
		"stock?type=&zone=&capacity-type=spot&left=many": "left: ", "allow?action=ec2:CreateFleet&x=y": "nothing else", "spot-price?type=m5.large&zone=&dollars=0.01": "",
		"deny?action=ec2:DescribeSubnets": "", "release-images?kubernetes=1.35&bottlerocket=1.47.0": "", "release-images?kubernetes=2&bottlerocket=": "not like 1.33",
		"send?queue=nobodys&body=x": "there is no queue", "jump": "404",
	} {
		status, text := post(deed)
		if (status < 300) != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %d %q, want %q", deed, status, text, want)
		}
	}
	for path, want := range map[string]string{"": "POST " + controlPath + "interrupt?instance=", "calls": "{", "prices": "m5.large us-east-1a on-demand 0.096\n"} {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if !strings.Contains(string(text), want) {
			t.Errorf("GET %s: %s", path, text)
		}
	}
}

// TestInstancesAreNoCallers: the calls with which machines are simulated are
// neither counted nor denied.
func TestInstancesAreNoCallers(t *testing.T) {
	url := start(t)
	answer, err := http.Post(url+controlPath+"deny?action=ec2:DescribeInstances", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	for key, allowed := range map[string]bool{machinesKey: true, "controller": false} {
		_, err := ec2.New(ec2.Options{
			Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider(key, key, ""),
		}).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
		if (err == nil) != allowed {
			t.Errorf("%s: %v", key, err)
		}
	}
	answer, err = http.Get(url + controlPath + "calls")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); strings.TrimSpace(string(text)) != `{"DescribeInstances":1}` {
		t.Errorf("calls: %s, %v", text, err)
	}
}

func TestInvalidFlagsFailAtOnce(t *testing.T) {
	for args, want := range map[string]string{
		"serve":                       "there are only flags",
		"--endpoint http://localhost": "nothing to do",
		"--every 0s":                  "--every 0s",
		"--boot-delay -1s":            "negative",
		"--journal nowhere/file":      "open --journal",
		"--endpoint x --kubeconfig y --journal z": "the other emulator",
		"--memory-overhead 1":                     "--memory-overhead 1",
		"--kubeconfig nowhere":                    "read --kubeconfig nowhere",
		"--listen nowhere:x":                      "listen at --listen nowhere:x",
		"--kubernetes-version 7":                  "not like 1.33",
		"--seed 4294967296":                       "less than 2^32",
		"--no-such-flag":                          "flag provided but not defined",
		"--kubeconfig nowhere --every x":          "invalid value",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
