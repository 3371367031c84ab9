// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// EC2 is what is asked about instances.
type EC2 interface {
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeInstanceAttribute(context.Context, *ec2.DescribeInstanceAttributeInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceAttributeOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeVolumes(context.Context, *ec2.DescribeVolumesInput, ...func(*ec2.Options)) (*ec2.DescribeVolumesOutput, error)
}

// Config says whose instances join which cluster. All fields are required but
// the delays, where 0 is at once, and the overhead.
type Config struct {
	EC2    EC2
	Kube   kubernetes.Interface
	Region string
	// Cluster is the name that the user data of this cluster's machines says.
	// Others join others.
	Cluster string
	// Delay is from an instance's launch until its kubelet registers; it must
	// be running by then.
	Delay time.Duration
	// Every is the time from one look at the instances to the next.
	Every time.Duration
	// Overhead is as in Machine.
	Overhead float64
	Clock    clock.WithTicker
	Log      *slog.Logger
}

// atOnce is how many machines boot or end at the same time.
const atOnce = 20

// loop remembers what it has done to instances, by ID.
type loop struct {
	Config
	nodes corelisters.NodeLister

	booted map[string]bool // or failed to: an instance boots once
	types  map[types.InstanceType]types.InstanceTypeInfo
	zones  map[string]string // zone IDs by zone
}

// Run boots machines until ctx is done, then returns nil. What fails is logged
// and tried again.
func Run(ctx context.Context, c Config) error {
	factory := informers.NewSharedInformerFactory(c.Kube, 0)
	nodes := factory.Core().V1().Nodes()
	informer := nodes.Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	l := newLoop(c, nodes.Lister())
	ticker := c.Clock.NewTicker(c.Every)
	defer ticker.Stop()
	for {
		if err := l.look(ctx); err != nil && ctx.Err() == nil {
			c.Log.Error("boot instances: trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func newLoop(c Config, nodes corelisters.NodeLister) *loop {
	return &loop{Config: c, nodes: nodes, booted: map[string]bool{}, types: map[types.InstanceType]types.InstanceTypeInfo{}, zones: map[string]string{}}
}

// look does what is due: boots instances that run, ends the machines of those
// that do not.
func (l *loop) look(ctx context.Context) error {
	instances, err := l.describe(ctx)
	if err != nil {
		return err
	}
	nodes, err := l.nodesByInstance()
	if err != nil {
		return err
	}
	var due []types.Instance
	for id, i := range instances {
		switch {
		case nodes[id] != nil:
			l.booted[id] = true
		case !l.booted[id] && i.State.Name == types.InstanceStateNameRunning && l.Clock.Since(aws.ToTime(i.LaunchTime)) >= l.Delay:
			due = append(due, i)
		}
	}
	errs := []error{l.boot(ctx, due)}
	var g errgroup.Group
	g.SetLimit(atOnce)
	ended := make(chan error, len(nodes))
	for id, node := range nodes {
		i, exists := instances[id]
		if exists && (i.State.Name == types.InstanceStateNameRunning || i.State.Name == types.InstanceStateNamePending) {
			continue
		}
		gone := !exists || i.State.Name == types.InstanceStateNameTerminated
		g.Go(func() error { ended <- l.end(ctx, node, gone); return nil })
	}
	_ = g.Wait() // the errors are in the channel
	close(ended)
	for err := range ended {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// describe returns all instances by ID.
func (l *loop) describe(ctx context.Context) (map[string]types.Instance, error) {
	all := map[string]types.Instance{}
	for pages := ec2.NewDescribeInstancesPaginator(l.EC2, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(1000)}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe instances: %w", err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				if i.InstanceId != nil && i.State != nil && i.Placement != nil {
					all[*i.InstanceId] = i
				}
			}
		}
	}
	return all, nil
}

// nodesByInstance returns the Nodes of machines of this package.
func (l *loop) nodesByInstance() (map[string]*corev1.Node, error) {
	nodes, err := l.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	all := map[string]*corev1.Node{}
	for _, node := range nodes {
		if id := instanceID(node.Spec.ProviderID); id != "" && node.Annotations[simulatedKey] == simulatedValue {
			all[id] = node
		}
	}
	return all, nil
}

// boot boots the instances, each once.
func (l *loop) boot(ctx context.Context, due []types.Instance) error {
	if len(due) == 0 {
		return nil
	}
	if err := l.learn(ctx, due); err != nil {
		return err
	}
	type outcome struct {
		id  string
		err error
	}
	outcomes := make(chan outcome, len(due))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, i := range due {
		g.Go(func() error { outcomes <- outcome{*i.InstanceId, l.register(ctx, i)}; return nil })
	}
	_ = g.Wait() // the errors are in the channel
	close(outcomes)
	var errs []error
	for o := range outcomes {
		refused, isRefused := errors.AsType[stranger](o.err)
		switch {
		case isRefused:
			l.Log.Warn("a machine does not join", "instance", o.id, "why", string(refused))
			l.booted[o.id] = true
		case o.err != nil:
			errs = append(errs, fmt.Errorf("boot %s: %w", o.id, o.err))
		default:
			l.booted[o.id] = true
		}
	}
	return errors.Join(errs...)
}

// stranger is why a machine does not join the cluster, ever.
type stranger string

func (s stranger) Error() string { return string(s) }

// register creates the instance's Node.
func (l *loop) register(ctx context.Context, i types.Instance) error {
	settings, err := l.settings(ctx, *i.InstanceId)
	if err != nil {
		return err
	}
	volumes, err := l.volumes(ctx, &i)
	if err != nil {
		return err
	}
	m := Machine{
		Instance: i, Type: l.types[i.InstanceType], Settings: settings, Region: l.Region,
		ZoneID: l.zones[aws.ToString(i.Placement.AvailabilityZone)], Volumes: volumes, Overhead: l.Overhead,
	}
	node, err := m.Node()
	if err != nil {
		return stranger(err.Error())
	}
	if _, err := l.Kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create node %s: %w", node.Name, err)
	}
	l.Log.Info("a machine has booted", "instance", *i.InstanceId, "node", node.Name, "type", string(i.InstanceType))
	return nil
}

// settings reads the instance's user data.
func (l *loop) settings(ctx context.Context, id string) (*Settings, error) {
	out, err := l.EC2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: &id, Attribute: types.InstanceAttributeNameUserData})
	if err != nil {
		return nil, fmt.Errorf("read user data: %w", err)
	}
	var encoded string
	if out.UserData != nil {
		encoded = aws.ToString(out.UserData.Value)
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, stranger("user data is not base64: " + err.Error())
	}
	s, err := Parse(string(text))
	if err != nil {
		return nil, stranger(err.Error())
	}
	if s.Cluster != l.Cluster {
		return nil, stranger(fmt.Sprintf("it must join cluster %q, and this one is %q", s.Cluster, l.Cluster))
	}
	return s, nil
}

// volumes returns the sizes in GiB of the instance's volumes by device.
func (l *loop) volumes(ctx context.Context, i *types.Instance) (map[string]int64, error) {
	devices := map[string]string{}
	var ids []string
	for _, b := range i.BlockDeviceMappings {
		if b.Ebs != nil && b.Ebs.VolumeId != nil {
			devices[*b.Ebs.VolumeId] = aws.ToString(b.DeviceName)
			ids = append(ids, *b.Ebs.VolumeId)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := l.EC2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: ids})
	if err != nil {
		return nil, fmt.Errorf("describe volumes: %w", err)
	}
	sizes := map[string]int64{}
	for _, v := range out.Volumes {
		sizes[devices[aws.ToString(v.VolumeId)]] = int64(aws.ToInt32(v.Size))
	}
	return sizes, nil
}

// learn gets the types and zones of the instances that are not known yet.
func (l *loop) learn(ctx context.Context, due []types.Instance) error {
	missing := map[types.InstanceType]bool{}
	newZone := false
	for _, i := range due {
		if _, ok := l.types[i.InstanceType]; !ok {
			missing[i.InstanceType] = true
		}
		_, ok := l.zones[aws.ToString(i.Placement.AvailabilityZone)]
		newZone = newZone || !ok
	}
	for name := range missing {
		out, err := l.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{name}})
		if err != nil {
			return fmt.Errorf("describe instance type %s: %w", name, err)
		}
		for _, t := range out.InstanceTypes {
			l.types[t.InstanceType] = t
		}
	}
	if !newZone {
		return nil
	}
	out, err := l.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		return fmt.Errorf("describe subnets: %w", err)
	}
	for _, s := range out.Subnets {
		l.zones[aws.ToString(s.AvailabilityZone)] = aws.ToString(s.AvailabilityZoneId)
	}
	return nil
}

// end has the machine be dead, and deletes its Node once the cluster has noticed
// and the instance is gone.
func (l *loop) end(ctx context.Context, node *corev1.Node, gone bool) error {
	nodes := l.Kube.CoreV1().Nodes()
	if node.Annotations[heartbeatKey] != dead {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, node.UID, heartbeatKey, dead)
		_, err := nodes.Patch(ctx, node.Name, apitypes.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("node %s, whose instance has ended: %w", node.Name, err)
		}
		return nil
	}
	if !gone || ready(node) || !node.DeletionTimestamp.IsZero() {
		return nil
	}
	err := nodes.Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.UID))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete node %s, whose instance is gone: %w", node.Name, err)
	}
	l.Log.Info("the node of an instance that is gone is deleted", "node", node.Name)
	return nil
}

func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
