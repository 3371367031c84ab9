// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
)

// told is what an account answers, as JSON, to compare accounts.
func told(t *testing.T, a *AWS) string {
	t.Helper()
	s, ctx := a.Services(), Unguarded(context.Background())
	instances, err := s.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	templates, err := s.EC2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		t.Fatal(err)
	}
	subnets, err := s.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	images, err := s.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := ec2API{a}.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{})
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := s.IAM.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := s.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("cluster")})
	if err != nil {
		t.Fatal(err)
	}
	spot, _ := a.Price(Pool{"m5.large", "us-west-2a", Spot})
	text, err := json.MarshalIndent([]any{instances, templates, subnets, images, volumes, profiles, cluster, spot, a.Instances()}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventful does something of every kind to an account, with messages received
// in between, which take identifiers and are not recorded.
func eventful(l *lab) {
	receive := func() {
		_, err := l.SQS.ReceiveMessage(l.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("/111122223333/cluster"), MaxNumberOfMessages: 10})
		l.must(err)
	}
	first := l.launch(Spot, l.override("m5.large", 0))
	l.clock.Step(time.Minute)
	receive()
	second := l.launch(OnDemand, l.override("m5.xlarge", 1))
	_, err := l.EC2.CreateTags(l.Context(), &ec2.CreateTagsInput{Resources: []string{second}, Tags: tags("Name", "second")})
	l.must(err)
	_, err = l.IAM.CreateInstanceProfile(l.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("profile")})
	l.must(err)
	l.Stock(Pool{Type: "c5.large"}, 1)
	third := l.launch(OnDemand, l.override("c5.large", 0))
	l.clock.Step(time.Minute)
	receive()
	l.must(l.Interrupt(first))
	l.must(l.terminate(third))
	l.must(l.ReleaseImages("1.33", l.clock.Now(), "1.47.0"))
	l.SetSpotPrice("m5.large", "us-west-2a", 0.01)
	l.Deny("ec2:RebootInstances", NoPolicy)
	l.clock.Step(time.Minute)
	receive()
	l.launch(OnDemand, l.override("t3.large", 2))
	l.must(l.Lose(l.launch(OnDemand, l.override("t3.large", 2))))
}

func recordingLab(t *testing.T) (*lab, *[]Entry) {
	var entries []Entry
	return newLab(t, func(c *Config) {
		c.BootDelay, c.ShutdownDelay, c.Seed = 20*time.Second, 10*time.Second, 7
		c.Record = func(e Entry) { entries = append(entries, e) }
	}), &entries
}

// TestRestoredAccount: what an account recorded leads to the same account, now
// and later.
func TestRestoredAccount(t *testing.T) {
	l, entries := recordingLab(t)
	eventful(l)
	text, err := json.Marshal(*entries)
	l.must(err)
	var read []Entry
	l.must(json.Unmarshal(text, &read))
	config := Config{Clock: l.clock, BootDelay: 20 * time.Second, ShutdownDelay: 10 * time.Second, KubernetesVersion: "1.33"}
	restored, err := Restore(config, read)
	l.must(err)
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(told(t, l.AWS), told(t, restored)); diff != "" {
			t.Errorf("%s the restored account differs:\n%s", when, diff)
		}
	}
	same("at once")
	_, err = restored.Services().EC2.RebootInstances(t.Context(), &ec2.RebootInstancesInput{InstanceIds: []string{*restored.Instances()[0].InstanceId}})
	l.refused(err, "UnauthorizedOperation")
	l.clock.Step(2 * time.Minute) // the interrupted instance ends
	same("later")
	if got := l.state(*restored.Instances()[0].InstanceId); got == "running" {
		t.Error("the interrupted instance runs on")
	}
}

// TestRestoredAccountGoesOnRecording: an account can be restored again and
// again, and its identifiers stay unique.
func TestRestoredAccountGoesOnRecording(t *testing.T) {
	l, entries := recordingLab(t)
	eventful(l)
	config := l.Config()
	for range 3 {
		l.clock.Step(time.Hour)
		restored, err := Restore(config, *entries)
		l.must(err)
		l.AWS, l.Services = restored, restored.Services()
		l.launch(OnDemand, l.override("m5.large", 0))
	}
	final, err := Restore(config, *entries)
	l.must(err)
	if diff := cmp.Diff(told(t, l.AWS), told(t, final)); diff != "" {
		t.Error(diff)
	}
	seen := map[string]bool{}
	for _, i := range final.Instances() {
		if seen[*i.InstanceId] {
			t.Errorf("two instances are called %s", *i.InstanceId)
		}
		seen[*i.InstanceId] = true
	}
}

// TestRestoredClusterIsUpgraded: the cluster's version, endpoint and authority
// are those of today.
func TestRestoredClusterIsUpgraded(t *testing.T) {
	l, entries := recordingLab(t)
	released, err := l.EC2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
	l.must(err)
	config := l.Config()
	config.KubernetesVersion, config.Endpoint, config.CertificateAuthority = "1.34", "https://elsewhere", "Y2E="
	for range 2 { // what the first upgrade recorded is repeated, and not done again
		restored, err := Restore(config, *entries)
		l.must(err)
		cluster, err := restored.Services().EKS.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("cluster")})
		l.must(err)
		if c := cluster.Cluster; *c.Version != "1.34" || *c.Endpoint != "https://elsewhere" || *c.CertificateAuthority.Data != "Y2E=" {
			t.Errorf("%+v", c)
		}
		images, err := restored.Services().EC2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
		l.must(err)
		if got := len(images.Images); got != len(released.Images)*3/2 {
			t.Errorf("%d images, there were %d of two releases", got, len(released.Images))
		}
	}
}

// TestRestoreRejectsUnusableJournal: entries that do not lead where they did.
func TestRestoreRejectsUnusableJournal(t *testing.T) {
	l, entries := recordingLab(t)
	eventful(l)
	for want, change := range map[string]func([]Entry) []Entry{
		"the first entry":          func(e []Entry) []Entry { return e[1:] },
		"unknown name":             func(e []Entry) []Entry { e[3].Name = "Explode"; return e },
		"it was":                   func(e []Entry) []Entry { return append(e[:2:2], e[3:]...) },
		"in a new account, it was": func(e []Entry) []Entry { e[0].After++; return e },
		"read the entry \"New\"":   func(e []Entry) []Entry { e[0].Input = []byte("[]"); return e },
	} {
		copied := append([]Entry(nil), *entries...)
		if _, err := Restore(l.Config(), change(copied)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestEveryChangingCallIsRestored: a call that changes the account has an action.
func TestEveryChangingCallIsRestored(t *testing.T) {
	actions := newLab(t, nil).actions()
	for name, op := range operations {
		if changing := op.mutating && op.service != "SQS"; changing && actions[name] == nil {
			t.Errorf("Restore does not know %s", name)
		}
	}
}
