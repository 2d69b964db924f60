/* Reads of at least 64 KiB from a block device have the idle I/O priority: most reads of a deep scrub, few of clients.

     cc -shared -fPIC -O2 -o idle_reads.so idle_reads.c
     LD_PRELOAD=idle_reads.so ceph-osd ...

   An experiment of examples/ceph, which shows what a rule for sizes would do. Ceph's packages are not changed. */
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <linux/ioprio.h>
#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* BlueStore's largest blob on a rotational drive (bluestore_max_blob_size_hdd). */
#define LEAST_BYTES 65536

static const int IDLE = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0);

static size_t bytes_read(const struct iocb *request)
{
    const struct iovec *parts = (const struct iovec *)request->aio_buf;
    size_t sum = 0;
    if (request->aio_lio_opcode == IOCB_CMD_PREAD)
        return request->aio_nbytes;
    if (request->aio_lio_opcode == IOCB_CMD_PREADV)
        for (size_t part = 0; part < request->aio_nbytes; part++)
            sum += parts[part].iov_len;
    return sum;
}

/* As in libaio: the error is negative. */
int io_submit(aio_context_t context, long count, struct iocb **requests)
{
    for (long each = 0; each < count; each++)
        if (bytes_read(requests[each]) >= LEAST_BYTES) {
            requests[each]->aio_flags |= IOCB_FLAG_IOPRIO;
            requests[each]->aio_reqprio = IDLE;
        }
    long done = syscall(SYS_io_submit, context, count, requests);
    return done < 0 ? -errno : done;
}

ssize_t pread64(int file, void *to, size_t length, off64_t at)
{
    struct stat found;
    if (length < LEAST_BYTES || fstat(file, &found) || !S_ISBLK(found.st_mode))
        return syscall(SYS_pread64, file, to, length, at);
    /* The priority of a thread holds for what it submits in between. */
    long before = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IDLE);
    ssize_t done = syscall(SYS_pread64, file, to, length, at);
    int error = errno;
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, before);
    errno = error;
    return done;
}

ssize_t __pread64_chk(int file, void *to, size_t length, off64_t at, size_t room)
{
    (void)room;
    return pread64(file, to, length, at);
}
