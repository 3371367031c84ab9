// SPDX-License-Identifier: Apache-2.0

package nodeclass_test

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/awsfake/wire"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/network"
	"karpenter/cloud/aws/nodeclass"
	"karpenter/cloud/aws/profile"
	"karpenter/cloud/aws/reservation"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/aws/userdata"
	"karpenter/control/controltest"
	"karpenter/kube/events"
)

// TestAccount runs the scripts on all that finds things in AWS, in an account
// in memory that holds the controller to the policies of its installation. Below
// each reconcile are the calls it made. Beside the language of package
// controltest there is:
//
//	deny ACTION no-policy|boundary|scp, allow ACTION
//	fail OPERATION CODE, mend OPERATION
//	reserve DURATION     a capacity block that ends then, tagged use=nodes
//	place NAME           a placement group
//	unrole, role         the nodes' role goes and comes
//
// The reconciler "left" counts launch templates and instance profiles.
func TestAccount(t *testing.T) {
	inMemory := func(services *awsclient.Services) *awsclient.Services { return services }
	runAccount(t, inMemory)
}

// TestAccountOverHTTP runs the same scripts with the SDK's clients.
func TestAccountOverHTTP(t *testing.T) {
	for _, variable := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(variable, "test")
	}
	t.Setenv("AWS_REGION", "us-west-2")
	runAccount(t, func(services *awsclient.Services) *awsclient.Services {
		server := httptest.NewServer(wire.New(services))
		t.Cleanup(server.Close)
		t.Setenv("AWS_ENDPOINT_URL", server.URL)
		clients, err := awsclient.Connect(t.Context(), "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		return clients
	})
}

// runAccount runs the scripts with the clients that connect makes of those in
// memory.
func runAccount(t *testing.T, connect func(*awsclient.Services) *awsclient.Services) {
	facts := allFacts(t)
	controltest.Run(t, "testdata/account", func(c *controltest.Cluster) {
		fake, err := awsfake.New(awsfake.Config{Clock: c.Clock, ControllerPolicy: true, ProfileDelay: 8 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		a := &account{AWS: fake, cluster: c, mend: map[string]func(){}}
		services := connect(fake.Services())
		r := nodeclass.New(a.config(services, facts))
		profiles := a.profiles
		c.Reconcilers[""] = a.counting(r)
		c.Reconcilers["collect"] = a.counting(&nodeclass.Collector{Client: c.Client, Profiles: profiles})
		maps.Copy(c.Commands, a.commands(services))
	})
}

type account struct {
	*awsfake.AWS
	cluster  *controltest.Cluster
	profiles *profile.Profiles
	mend     map[string]func()
}

// config is everything as the process wires it.
func (a *account) config(services *awsclient.Services, facts []*instancetype.Facts) nodeclass.Config {
	c, of := a.cluster, a.Config()
	cidr := template.NewServiceCIDR(services.EKS, of.Cluster, c.Clock)
	a.profiles = profile.New(profile.Config{IAM: services.IAM, Clock: c.Clock, Region: of.Region, ClusterName: of.Cluster})
	return nodeclass.Config{
		Client: c.Client, Clock: c.Clock, ClusterName: of.Cluster, ReservedCapacity: true,
		Cluster: instancetype.Cluster{Region: of.Region, MemoryOverhead: 0.075},
		AWS: nodeclass.AWS{
			Images: image.New(image.Config{
				EC2: services.EC2, SSM: services.SSM, Clock: c.Clock, Refresh: time.Minute, Kubernetes: func() string { return of.KubernetesVersion },
			}),
			Subnets:         network.NewSubnets(services.EC2, c.Clock, time.Minute),
			SecurityGroups:  network.NewSecurityGroups(services.EC2, c.Clock, time.Minute),
			Reservations:    reservation.NewReservations(services.EC2, c.Clock, &reservation.Counts{}),
			PlacementGroups: reservation.NewGroups(services.EC2, c.Clock),
			Profiles:        a.profiles,
			Templates: template.New(template.Config{
				EC2: services.EC2, Clock: c.Clock, Metrics: template.NewMetrics(c.Registry), Region: of.Region, ReservedCapacity: true,
				Cluster: userdata.Cluster{Name: of.Cluster, Endpoint: of.Endpoint, CABundle: of.CertificateAuthority, DNS: "10.100.0.10"},
				CIDR:    cidr.Get,
			}),
			Launch: services.EC2,
			Facts:  func() []*instancetype.Facts { return facts },
			CIDR:   cidr.Get,
		},
		Tell: func(class *awsv1.EC2NodeClass, eventType, reason, message string) {
			c.Recorder.Publish(events.Event{Object: class, Type: eventType, Reason: reason, Message: message})
		},
	}
}

// counting tells what calls a reconcile makes.
func (a *account) counting(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		a.ResetCalls()
		result, err := r.Reconcile(ctx, request)
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(a.Calls())) {
			texts = append(texts, fmt.Sprintf("%s %d", name, a.Calls()[name]))
		}
		a.cluster.Tell("calls: %s", strings.Join(texts, ", "))
		if code := awsclient.Code(err); code != "" {
			err = fmt.Errorf("%s: %s", code, awsclient.Message(err)) // without the number of the request
		}
		return result, err
	})
}

func (a *account) commands(services *awsclient.Services) map[string]func([]string) error {
	reasons := map[string]string{"no-policy": awsfake.NoPolicy, "boundary": awsfake.PermissionsBoundary, "scp": awsfake.ServiceControlPolicy}
	role := "KarpenterNodeRole-" + a.Config().Cluster
	plain := func(f func()) func([]string) error { return func([]string) error { f(); return nil } }
	commands := map[string]func([]string) error{
		"deny":  func(words []string) error { a.Deny(words[0], reasons[words[1]]); return nil },
		"allow": func(words []string) error { a.Allow(words[0]); return nil },
		"fail": func(words []string) error {
			a.mend[words[0]] = a.Fail(words[0], awsfake.Failure{Code: words[1]})
			return nil
		},
		"mend": func(words []string) error { a.mend[words[0]](); return nil },
		"reserve": func(words []string) error {
			d, err := time.ParseDuration(words[0])
			use, nodes := "use", "nodes"
			a.AddReservation(awsfake.Reservation{
				Type: "p5.48xlarge", Zone: a.Config().Region + "a", Count: 2, CapacityBlock: true, End: a.cluster.Clock.Now().Add(d),
				Tags: []types.Tag{{Key: &use, Value: &nodes}},
			})
			return err
		},
		"place": func(words []string) error {
			a.AddPlacementGroup(words[0], types.PlacementStrategyCluster, 0)
			return nil
		},
		"unrole": plain(func() { a.RemoveRole(role) }),
		"role":   plain(func() { a.AddRole(role, "/") }),
	}
	a.cluster.Reconcilers["left"] = reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		profiles, err := services.IAM.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
		if err == nil {
			a.cluster.Tell("%d launch templates, %d instance profiles", len(a.LaunchTemplates()), len(profiles.InstanceProfiles))
		}
		return reconcile.Result{}, err
	})
	return commands
}
