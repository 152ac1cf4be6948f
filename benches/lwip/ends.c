/*
 * Moves a stream between two lwIP interfaces in one process, to be counted by valgrind: the same work as that of
 * benches/segments, whose page says how it is counted.
 *
 *     ends SUMS COUNT      SUMS: sums | none; COUNT: full segments
 *
 * lwIP has one of everything in a process: both connections are in one list, where the one that a segment is for goes to the
 * front. That costs it a little which two machines would not have.
 */

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MSS = 1460,
    /* Segments that the sender hands over in a turn, and frames that the receiver takes in one. */
    SENT = 8,
    RECEIVED = 2,
    /* Frames that wait for an end at most. */
    WIRE = 64,
    DATA = 32 << 10,
};

/* One end: its interface, the frames that wait for it, and what it moved. */
struct end {
    struct netif netif;
    struct end *other;
    struct pbuf *waiting[WIRE];
    unsigned first, count;
    struct tcp_pcb *pcb;
    size_t moved;
    unsigned long frames;
};

static struct end a, b;
static unsigned char data[DATA];
static unsigned long now_us;

u32_t sys_now(void)
{
    return now_us / 1000;
}

struct netif *route_by_source(const void *source)
{
    const ip4_addr_t *from = source;
    return from && ip4_addr_cmp(from, netif_ip4_addr(&b.netif)) ? &b.netif : &a.netif;
}

/* The wire: one copy of each frame, into a buffer of the pool, as a driver would make it. */
static err_t wire(struct netif *netif, struct pbuf *frame)
{
    struct end *from = netif->state, *to = from->other;
    struct pbuf *copy = to->count < WIRE ? pbuf_alloc(PBUF_RAW, frame->tot_len, PBUF_POOL) : NULL;
    if (!copy)
        return ERR_MEM;
    pbuf_copy(copy, frame);
    to->waiting[(to->first + to->count++) % WIRE] = copy;
    from->frames++;
    return ERR_OK;
}

static err_t set_up(struct netif *netif)
{
    netif->name[0] = 'e';
    netif->name[1] = 't';
    netif->mtu = 1500;
    netif->hwaddr_len = ETH_HWADDR_LEN;
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
    netif->output = etharp_output;
    netif->linkoutput = wire;
    return ERR_OK;
}

static void attach(struct end *end, struct end *other, unsigned char last, int sums)
{
    ip4_addr_t address, mask, gateway;
    IP4_ADDR(&address, 10, 0, 0, last);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 0, 0, 0, 0);
    end->other = other;
    netif_add(&end->netif, &address, &mask, &gateway, end, set_up, ethernet_input);
    unsigned char mac[ETH_HWADDR_LEN] = {2, 0, 0, 0, 0, last};
    memcpy(end->netif.hwaddr, mac, sizeof mac);
    /* As with the others, the sum of the IPv4 header is always the stack's. */
    if (!sums)
        NETIF_SET_CHECKSUM_CTRL(&end->netif, NETIF_CHECKSUM_GEN_IP | NETIF_CHECKSUM_CHECK_IP);
    netif_set_up(&end->netif);
    netif_set_link_up(&end->netif);
}

static void take(struct end *end, unsigned most)
{
    while (end->count && most--) {
        struct pbuf *frame = end->waiting[end->first];
        end->first = (end->first + 1) % WIRE;
        end->count--;
        if (end->netif.input(frame, &end->netif) != ERR_OK)
            pbuf_free(frame);
    }
    sys_check_timeouts();
}

static err_t on_received(void *arg, struct tcp_pcb *pcb, struct pbuf *bytes, err_t error)
{
    struct end *end = arg;
    (void)error;
    if (bytes) {
        end->moved += bytes->tot_len;
        tcp_recved(pcb, bytes->tot_len);
        pbuf_free(bytes);
    }
    return ERR_OK;
}

static err_t on_accepted(void *arg, struct tcp_pcb *pcb, err_t error)
{
    (void)error;
    ((struct end *)arg)->pcb = pcb;
    tcp_arg(pcb, arg);
    tcp_recv(pcb, on_received);
    return ERR_OK;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t error)
{
    (void)error;
    ((struct end *)arg)->pcb = pcb;
    return ERR_OK;
}

/* A turn of the sender: what came back, and the next segments, whose payload lwIP refers to and does not copy. */
__attribute__((noinline)) void sender(size_t all)
{
    take(&a, WIRE);
    if (!a.pcb)
        return;
    size_t room = LWIP_MIN((size_t)tcp_sndbuf(a.pcb), (size_t)SENT * MSS);
    size_t len = LWIP_MIN(room, all - a.moved);
    while (len) {
        size_t at = a.moved % DATA, part = LWIP_MIN(len, DATA - at);
        if (tcp_write(a.pcb, data + at, part, 0) != ERR_OK)
            break;
        a.moved += part;
        len -= part;
    }
    tcp_output(a.pcb);
}

__attribute__((noinline)) void receiver(void)
{
    take(&b, RECEIVED);
}

int main(int argc, char **argv)
{
    if (argc != 3 || (strcmp(argv[1], "sums") && strcmp(argv[1], "none")) || atol(argv[2]) <= 0) {
        fprintf(stderr, "expected two arguments: sums|none COUNT\n");
        return 2;
    }
    int sums = !strcmp(argv[1], "sums");
    size_t all = (size_t)atol(argv[2]) * MSS;
    unsigned state = 1;
    for (int at = 0; at < DATA; at++) {
        state = state * 1664525 + 1013904223;
        data[at] = state >> 24;
    }
    lwip_init();
    attach(&a, &b, 1, sums);
    attach(&b, &a, 2, sums);
    struct tcp_pcb *listener = tcp_new();
    if (!listener || tcp_bind(listener, netif_ip_addr4(&b.netif), 80) != ERR_OK)
        return 1;
    listener = tcp_listen(listener);
    tcp_arg(listener, &b);
    tcp_accept(listener, on_accepted);
    struct tcp_pcb *client = tcp_new();
    tcp_arg(client, &a);
    tcp_nagle_disable(client);
    tcp_bind(client, netif_ip_addr4(&a.netif), 0);
    if (tcp_connect(client, netif_ip_addr4(&b.netif), 80, on_connected) != ERR_OK)
        return 1;
    while (b.moved < all && now_us < 60000000) {
        sender(all);
        do
            receiver();
        while (b.count);
        /* 8 segments in 0.1 ms are 1 Gb/s. */
        now_us += 100;
    }
    printf("%lu segments, %lu acknowledgements\n", a.frames, b.frames);
    return b.moved < all;
}
