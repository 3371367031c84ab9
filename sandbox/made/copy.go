// SPDX-License-Identifier: Apache-2.0

package made

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

// Where the API server keeps objects.
const (
	claimKeys = "/registry/karpenter.sh/nodeclaims/"
	nodeKeys  = "/registry/minions/"
	podKeys   = "/registry/pods/" + namespace + "/"
)

const batch = 50 // of what is written in one transaction; a node and its claim are one

// copier writes copies of stored objects to etcd. To create them through the API server takes ten times as long.
type copier struct {
	*writer
	etcd  *clientv3.Client
	codec runtime.Codec
	claim *unstructured.Unstructured
	node  *corev1.Node
	pods  []*corev1.Pod // of each deployment one
}

// newCopier reads the first claim, its node and the first pod of each deployment.
func newCopier(ctx context.Context, w *writer, pods []string, etcd *clientv3.Client) (*copier, error) {
	protobuf, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		return nil, fmt.Errorf("no serializer for %s", runtime.ContentTypeProtobuf)
	}
	c := &copier{
		writer: w, etcd: etcd, claim: &unstructured.Unstructured{}, node: &corev1.Node{},
		codec: scheme.Codecs.CodecForVersions(protobuf.Serializer, scheme.Codecs.UniversalDeserializer(), corev1.SchemeGroupVersion, nil),
	}
	text, err := c.stored(ctx, claimKeys+claimName(0))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &c.claim.Object); err != nil {
		return nil, err
	}
	if err := c.decode(ctx, nodeKeys+nodeName(0), c.node); err != nil {
		return nil, err
	}
	for _, name := range pods {
		pod := &corev1.Pod{}
		if err := c.decode(ctx, podKeys+name, pod); err != nil {
			return nil, err
		}
		c.pods = append(c.pods, pod)
	}
	return c, nil
}

func (c *copier) stored(ctx context.Context, key string) ([]byte, error) {
	answer, err := c.etcd.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(answer.Kvs) != 1 {
		return nil, fmt.Errorf("etcd has no %s", key)
	}
	return answer.Kvs[0].Value, nil
}

func (c *copier) decode(ctx context.Context, key string, into runtime.Object) error {
	raw, err := c.stored(ctx, key)
	if err != nil {
		return err
	}
	_, _, err = c.codec.Decode(raw, nil, into)
	return err
}

// all copies to the numbers from first to n-1.
func (c *copier) all(ctx context.Context, first, n int, of func(i int) ([]clientv3.Op, error)) error {
	return parallel(ctx, (n-first+batch-1)/batch, func(ctx context.Context, b int) error {
		var puts []clientv3.Op
		for i := first + b*batch; i < min(first+(b+1)*batch, n); i++ {
			more, err := of(i)
			if err != nil {
				return err
			}
			puts = append(puts, more...)
		}
		_, err := c.etcd.Txn(ctx).Then(puts...).Commit()
		return err
	})
}

// nodeOf copies the claim and the node.
func (c *copier) nodeOf(i int) ([]clientv3.Op, error) {
	claim, node := c.claim.DeepCopy(), c.node.DeepCopy()
	claim.SetUID(uuid.NewUUID())
	alike(claim, i)
	text, err := json.Marshal(claim.Object)
	if err != nil {
		return nil, err
	}
	node.UID = uuid.NewUUID()
	placed(node, i, claim.GetUID())
	raw, err := runtime.Encode(c.codec, node)
	if err != nil {
		return nil, err
	}
	return []clientv3.Op{clientv3.OpPut(claimKeys+claim.GetName(), string(text)), clientv3.OpPut(nodeKeys+node.Name, string(raw))}, nil
}

// podOf copies the pod of its deployment.
func (c *copier) podOf(i int) ([]clientv3.Op, error) {
	pod := c.pods[i%deployments].DeepCopy()
	pod.Name, pod.UID, pod.Spec.NodeName = c.podName(i), uuid.NewUUID(), c.nodeOfPod(i)
	runs(pod, i)
	raw, err := runtime.Encode(c.codec, pod)
	if err != nil {
		return nil, err
	}
	return []clientv3.Op{clientv3.OpPut(podKeys+pod.Name, string(raw))}, nil
}
