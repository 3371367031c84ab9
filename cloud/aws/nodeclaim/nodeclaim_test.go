// SPDX-License-Identifier: Apache-2.0

package nodeclaim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/instance"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/nodeclaim"
	"karpenter/cloud/aws/reservation"
	"karpenter/cloud/batch"
	"karpenter/control/controltest"
	"karpenter/kube/events"
	"karpenter/model"
)

// TestControllers runs the scripts in testdata: reconcilers are "tagging" and
// "memory", of a claim, and "demotion" and "expiration". Beside the language of
// package controltest there is:
//
//	machine a HOW 2h     an m5.large in us-west-2a for claim a, with Node node-a that
//	                     is registered; reserved: in a targeted capacity
//	                     reservation, block: in a capacity block, that end then;
//	                     open: in an open reservation that it did not ask for
//	end a                the reservation of a machine ends now
//	tag a KEY=VALUE      by hand
//	deny ACTION, allow ACTION
//
// "reconcile a look" tells what AWS knows of a machine, and how often it was
// asked since the last look.
func TestControllers(t *testing.T) {
	for _, file := range []string{"tagging", "demotion", "expiration", "memory"} {
		t.Run(file, func(t *testing.T) {
			controltest.Run(t, "testdata/"+file, func(c *controltest.Cluster) { newWorld(t, c) })
		})
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	newWorld(t, c)
	c.Register(t)
}

// loop is a controller that only time moves.
type loop struct {
	run      func(context.Context) (time.Duration, error)
	register func(manager.Manager) error
}

func (l loop) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	again, err := l.run(ctx)
	return reconcile.Result{RequeueAfter: again}, err
}

func (l loop) Register(mgr manager.Manager, _ controller.Options) error { return l.register(mgr) }

type world struct {
	*controltest.Cluster
	aws      *awsfake.AWS
	ids      map[string]string // of instances, by claim
	reserved map[string]string // reservations, by claim
	memory   instancetype.Memory
}

func newWorld(t *testing.T, c *controltest.Cluster) {
	account, err := awsfake.New(awsfake.Config{Clock: c.Clock, Types: []string{"m5.large"}, ControllerPolicy: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, aws: account, ids: map[string]string{}, reserved: map[string]string{}}
	services := account.Services()
	claims := &nodeclaim.Claims{
		Client: c.Client, Live: c.Client, Disrupted: c.Disruptions.Forced,
		Tell: func(o client.Object, eventType, reason, message string) {
			c.Recorder.Publish(events.Event{Object: o, Type: eventType, Reason: reason, Message: message})
		},
	}
	instances := instance.New(instance.Config{
		EC2: services.EC2, Cluster: "cluster", Clock: c.Clock, ReservedCapacity: true,
		Metrics: instance.NewMetrics(c.Registry), Batches: batch.NewMetrics(prometheus.NewRegistry(), nil),
		Claims: func(context.Context) ([]instance.Claim, error) { return nil, nil },
	})
	demotion := &nodeclaim.Demotion{Claims: claims, Instances: instances}
	expiration := &nodeclaim.Expiration{Claims: claims, Reservations: reservation.NewReservations(services.EC2, c.Clock, &reservation.Counts{})}
	c.Reconcilers["tagging"] = &nodeclaim.Tagging{Client: c.Client, Clock: c.Clock, Cluster: "cluster", Instances: instances}
	c.Reconcilers["memory"] = &nodeclaim.Memory{Claims: claims, Clock: c.Clock, Sights: &w.memory}
	c.Reconcilers["demotion"] = loop{demotion.Round, demotion.Register}
	c.Reconcilers["expiration"] = loop{expiration.Round, expiration.Register}
	c.Reconcilers["look"] = look{w}
	c.Commands["machine"] = w.machine
	c.Commands["end"] = func(words []string) error { return w.aws.CancelReservation(w.reserved[words[0]]) }
	c.Commands["deny"] = func(words []string) error { w.aws.Deny(words[0], awsfake.NoPolicy); return nil }
	c.Commands["allow"] = func(words []string) error { w.aws.Allow(words[0]); return nil }
	c.Commands["tag"] = func(words []string) error {
		key, value, _ := strings.Cut(words[1], "=")
		_, err := services.EC2.CreateTags(context.Background(), &ec2.CreateTagsInput{
			Resources: []string{w.ids[words[0]]}, Tags: []types.Tag{{Key: &key, Value: &value}},
		})
		w.aws.ResetCalls()
		return err
	}
}

// machine starts an instance, with claim and Node.
func (w *world) machine(words []string) error {
	name, how := words[0], words[1]
	start := awsfake.Start{Type: "m5.large"}
	for key, value := range map[string]string{
		"kubernetes.io/cluster/cluster": "owned", awsv1.NodePoolTagKey: "default", awsv1.NodeClassTagKey: "default", awsv1.ClusterNameTagKey: "cluster",
	} {
		start.Tags = append(start.Tags, types.Tag{Key: &key, Value: &value})
	}
	if how != model.OnDemand {
		r := awsfake.Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 1, CapacityBlock: how == "block", Open: how == "open"}
		if len(words) > 2 {
			after, err := time.ParseDuration(words[2])
			if err != nil {
				return err
			}
			r.End = w.Clock.Now().Add(after)
		}
		w.reserved[name] = w.aws.AddReservation(r)
		if how != "open" {
			start.Reservation = w.reserved[name]
		}
	}
	id, err := w.aws.StartInstance(start)
	if err != nil {
		return err
	}
	w.ids[name] = id
	claim := w.NewClaim(name)
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	claim.Finalizers = []string{v1.TerminationFinalizer}
	labels := map[string]string{
		model.LabelInstanceType: "m5.large", model.LabelCapacityType: model.OnDemand, awsv1.InstanceMemoryLabelKey: "8192",
	}
	if start.Reservation != "" {
		labels[model.LabelCapacityType] = model.Reserved
		labels[awsv1.CapacityReservationIDLabelKey] = start.Reservation
		labels[awsv1.CapacityReservationTypeLabelKey] = map[bool]string{true: "capacity-block", false: "default"}[how == "block"]
		labels[awsv1.CapacityReservationInterruptibleLabelKey] = "false"
	}
	for key, value := range labels {
		claim.Labels[key] = value
	}
	labels[v1.NodeRegisteredLabelKey] = "true"
	claim.Status.ProviderID, claim.Status.NodeName, claim.Status.ImageID = "aws:///us-west-2a/"+id, "node-"+name, "ami-1"
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName, UID: k8stypes.UID("uid-of-node-" + name), Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
	}
	ctx, status := context.Background(), claim.DeepCopy()
	err = errors.Join(w.Client.Create(ctx, claim), w.Client.Create(ctx, node))
	status.ResourceVersion = claim.ResourceVersion
	return errors.Join(err, w.Client.Status().Update(ctx, status))
}

// look tells what there is outside of the cluster.
type look struct{ w *world }

func (l look) Reconcile(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
	for _, i := range l.w.aws.Instances() {
		if *i.InstanceId != l.w.ids[request.Name] {
			continue
		}
		for _, tag := range i.Tags {
			if *tag.Key == awsv1.NameTagKey || *tag.Key == awsv1.NodeClaimTagKey {
				l.w.Tell("tag %s=%s", *tag.Key, *tag.Value)
			}
		}
	}
	for _, call := range []string{"CreateTags", "DescribeInstances", "DescribeCapacityReservations"} {
		if n := l.w.aws.Calls()[call]; n > 0 {
			l.w.Tell("%d %s", n, call)
		}
	}
	l.w.aws.ResetCalls()
	for _, image := range []string{"ami-1", "ami-2"} {
		if bytes := l.w.memory.Bytes("m5.large", image, l.w.Clock.Now()); bytes > 0 {
			l.w.Tell("m5.large with %s has %s", image, fmt.Sprint(bytes>>20, "Mi"))
		}
	}
	return reconcile.Result{}, nil
}

func (l look) Register(manager.Manager, controller.Options) error { return nil }
