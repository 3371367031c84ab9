// SPDX-License-Identifier: Apache-2.0

package interruption_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
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
	"karpenter/cloud/aws/interruption"
	"karpenter/cloud/aws/nodeclaim"
	"karpenter/cloud/aws/shortage"
	"karpenter/control/controltest"
	"karpenter/kube/events"
	"karpenter/model"
)

// TestControllers runs the scripts in testdata. "reconcile - queue" is one poll,
// "reconcile - status" one look at the statuses. Beside the language of package
// controltest there is:
//
//	machine a spot|on-demand|lent|alone
//	                     an m5.large in us-west-2a for claim a, with Node node-a;
//	                     lent is in an interruptible capacity reservation, alone
//	                     has neither claim nor Node
//	interrupt|rebalance|lose|heal a
//	                     what AWS does to the machine
//	impair a instance|system
//	schedule CODE 2h a b for two machines
//	send TEXT            into the queue; < and > are braces, "ID(a)" is the
//	                     instance of a machine
//	queue off|on
//	deny ACTION, allow ACTION
//	observe              only, from now on
//	mark                 rebalance recommendations, from now on
//
// "reconcile - look" tells how many messages are left, and of shortages.
func TestControllers(t *testing.T) {
	for _, file := range []string{"queue", "status"} {
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

type world struct {
	*controltest.Cluster
	aws    *awsfake.AWS
	ids    map[string]string // of instances, by claim
	short  *shortage.Log
	status interruption.StatusConfig
	queue  interruption.QueueConfig
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

func newWorld(t *testing.T, c *controltest.Cluster) *world {
	account, err := awsfake.New(awsfake.Config{Clock: c.Clock, Types: []string{"m5.large"}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, aws: account, ids: map[string]string{}, short: &shortage.Log{}}
	claims := &nodeclaim.Claims{
		Client: c.Client, Live: c.Client, Disrupted: c.Disruptions.Forced,
		Tell: func(o client.Object, eventType, reason, message string) {
			c.Recorder.Publish(events.Event{Object: o, Type: eventType, Reason: reason, Message: message})
		},
	}
	metrics := interruption.NewMetrics(c.Registry, []float64{1, 60})
	w.queue = interruption.QueueConfig{
		SQS: account.Services().SQS, Name: "cluster", Claims: claims, Clock: c.Clock, Metrics: metrics, Shortages: w.short,
	}
	w.status = interruption.StatusConfig{EC2: account.Services().EC2, Claims: claims, Clock: c.Clock, Metrics: metrics}
	w.watch()
	w.commands()
	return w
}

// watch makes the controllers again.
func (w *world) watch() {
	q, s := interruption.NewQueue(w.queue), interruption.NewStatuses(w.status)
	w.Reconcilers["queue"] = loop{q.Poll, q.Register}
	w.Reconcilers["status"] = loop{s.Check, s.Register}
}

func (w *world) commands() {
	one := func(do func(id string) error) func([]string) error {
		return func(words []string) error { return do(w.ids[words[0]]) }
	}
	w.Commands["machine"] = w.machine
	w.Commands["interrupt"] = one(w.aws.Interrupt)
	w.Commands["rebalance"] = one(w.aws.Rebalance)
	w.Commands["lose"] = one(w.aws.Lose)
	w.Commands["heal"] = one(w.aws.Heal)
	w.Commands["impair"] = func(words []string) error { return w.aws.Impair(w.ids[words[0]], words[1]) }
	w.Commands["schedule"] = func(words []string) error {
		after, err := time.ParseDuration(words[1])
		var ids []string
		for _, claim := range words[2:] {
			ids = append(ids, w.ids[claim])
		}
		return errors.Join(err, w.aws.Schedule(types.EventCode(words[0]), w.Clock.Now().Add(after), ids...))
	}
	w.Commands["send"] = w.send
	w.Commands["queue"] = func(words []string) error {
		if words[0] == "off" {
			w.aws.RemoveQueue("cluster")
		} else {
			w.aws.AddQueue("cluster")
		}
		return nil
	}
	w.Commands["deny"] = func(words []string) error { w.aws.Deny(words[0], awsfake.NoPolicy); return nil }
	w.Commands["allow"] = func(words []string) error { w.aws.Allow(words[0]); return nil }
	w.Commands["observe"] = func([]string) error { w.status.ObserveOnly = true; w.watch(); return nil }
	w.Commands["mark"] = func([]string) error { w.queue.MarkRebalance = true; w.watch(); return nil }
	w.Reconcilers["look"] = look{w}
}

// send puts a text into the queue.
func (w *world) send(words []string) error {
	text := strings.NewReplacer("<", "{", ">", "}").Replace(strings.Join(words, " "))
	for claim, id := range w.ids {
		text = strings.ReplaceAll(text, "ID("+claim+")", id)
	}
	return w.aws.SendMessage("cluster", text)
}

// look tells what there is outside of the cluster.
type look struct{ w *world }

func (l look) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	l.w.Tell("%d messages", len(l.w.aws.Messages("cluster")))
	for _, kind := range []string{model.Spot, model.OnDemand} {
		for _, zone := range []string{"us-west-2a", "us-west-2b"} {
			if l.w.short.SoldOut(shortage.Offering{CapacityType: kind, InstanceType: "m5.large", Zone: zone}, nil, l.w.Clock.Now()) {
				l.w.Tell("m5.large %s %s sold out", kind, zone)
			}
		}
	}
	for claim := range l.w.ids {
		id := ""
		if c := l.w.claimLabels(ctx, claim); c != nil {
			id = c[awsv1.CapacityReservationIDLabelKey]
		}
		if l.w.short.ReservationShort("m5.large", "us-west-2a", id, l.w.Clock.Now()) { // spec 48/86
			l.w.Tell("m5.large is short in the reservation of %s", claim)
		}
	}
	return reconcile.Result{}, nil
}

// claimLabels returns the labels of a claim, nil if it is gone.
func (w *world) claimLabels(ctx context.Context, name string) map[string]string {
	c := &v1.NodeClaim{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
		return nil
	}
	return c.Labels
}

func (l look) Register(manager.Manager, controller.Options) error { return nil }

// machine starts an instance, with claim and Node, and empties the queue of what
// its start has put there.
func (w *world) machine(words []string) error {
	name, how := words[0], words[1]
	start := awsfake.Start{Type: "m5.large", Spot: how == model.Spot}
	if how == "lent" {
		start.Reservation = w.aws.AddReservation(awsfake.Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 1, Interruptible: true, Owner: "999999999999"})
	}
	id, err := w.aws.StartInstance(start)
	w.ids[name] = id
	w.aws.RemoveQueue("cluster")
	w.aws.AddQueue("cluster")
	if err != nil || how == "alone" {
		return err
	}
	claim := w.NewClaim(name)
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	claim.Finalizers = []string{v1.TerminationFinalizer}
	claim.Labels[model.LabelInstanceType], claim.Labels[model.LabelZone], claim.Labels[model.LabelCapacityType] = "m5.large", "us-west-2a", how
	if start.Reservation != "" {
		claim.Labels[model.LabelCapacityType] = model.Reserved
		claim.Labels[awsv1.CapacityReservationIDLabelKey] = start.Reservation
	}
	claim.Status.ProviderID, claim.Status.NodeName = "aws:///us-west-2a/"+id, "node-"+name
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName, UID: k8stypes.UID("uid-of-node-" + name)},
		Spec:       corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
	}
	status := claim.DeepCopy()
	if err := errors.Join(w.Client.Create(context.Background(), claim), w.Client.Create(context.Background(), node)); err != nil {
		return err
	}
	status.ResourceVersion = claim.ResourceVersion
	return w.Client.Status().Update(context.Background(), status)
}
